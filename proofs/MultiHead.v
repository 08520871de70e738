(** L2 multi-head attention of Kim, Papamakarios and Mnih (ICML 2021), and how its weights enter a
    Lipschitz constant: every constant L of the core map gives constants of the layer. *)
From Lipsa Require Import Sums Phi Tokens Norms Core Heads Infinity Frobenius.

(** (X W) V = X (W V); the product of two matrices is written rmul, too. *)
Lemma rmul_assoc D d V W x : rmul d V (rmul D W x) = rmul D (rmul d V W) x.
Proof. extensionality i; extensionality o; apply rsum_assoc. Qed.
Lemma rmul_scale D k W x : rmul D W (scale k x) = scale k (rmul D W x).
Proof. token_ring. Qed.
Lemma rmul_scale_W D k W x : rmul D (scale k W) x = rmul D W (scale k x).
Proof. token_ring. Qed.

(** The values may be transformed before or after they are averaged. *)
Lemma attention_rmul n D see score W x i b :
  rmul D W (attention n see score x) i b = rsum n (fun j => P n see score x i j * rmul D W x j b).
Proof. apply rsum_assoc. Qed.

Lemma lipschitz_scale n D N k : token_norm n D N -> 0 <= k -> lipschitz N N (scale k) k.
Proof. intros HN k0 x y _ _; rewrite tsub_scale, (norm_scale _ _ _ HN), Rabs_pos_eq; auto with pos. Qed.

Section MultiHead.
Variables (n D d dv D' H : nat) (see : mask) (s : R).
Variables (W_Q W_V W_O : nat -> tokens).    (* of a head: D x d, D x dv, dv x D' *)
Hypothesis s0 : 0 <= s.                     (* 1/sqrt d in the paper *)

(** Scores -s |x_i W_Q - x_j W_Q|^2, A = s W_Q W_Q^T and f(X) = P X A W_V of a head. *)
Definition head_score h (x : tokens) i j := - (s * sqdist d (rmul D (W_Q h) x) i j).
Definition A h := scale s (rmul d (transpose (W_Q h)) (W_Q h)).
Definition l2_head h (x : tokens) : tokens :=
  rmul D (W_V h) (rmul D (A h) (attention n see (head_score h) x)).

(** F(X) = [f^1(X) ... f^H(X)] W_O. *)
Definition l2_multihead := heads_concat dv H l2_head W_O.

(** What the core map makes of X W_Q^h: sqrt s g(sqrt s X W_Q^h). *)
Definition scaled_core h (x : tokens) := scale (sqrt s) (core n d see (scale (sqrt s) (rmul D (W_Q h) x))).

(** W_Q^T W_V of a head. *)
Definition QV h := rmul D (W_V h) (transpose (W_Q h)).

(** A head is the core map between W_Q and W_Q^T W_V. *)
Theorem l2_head_core h x : l2_head h x = rmul d (QV h) (scaled_core h x).
Proof.
  set (z := scale (sqrt s) (rmul D (W_Q h) x)).
  assert (S : head_score h x = l2_score d z).
  { extensionality i; extensionality j; unfold head_score, l2_score, z.
    rewrite sqdist_scale, pow2_sqrt; auto. }
  assert (E : core n d see z = scale (sqrt s) (rmul D (W_Q h) (attention n see (head_score h) x))).
  { extensionality i; extensionality c; unfold scale; rewrite attention_rmul, <- rsum_scal.
    apply rsum_ext; intros j _; unfold P, total, weight; rewrite S; unfold z, scale; ring. }
  unfold l2_head, scaled_core, A, QV; fold z; rewrite E, scale_scale, sqrt_sqrt by apply s0.
  rewrite !rmul_scale_W, <- !rmul_assoc, !rmul_scale; reflexivity.
Qed.

Variable L : R.                             (* a Lipschitz constant of the core map *)
Hypothesis L0 : 0 <= L.

(** |x W_Q^h| <= q |x| and the core constant L give s L q, in any norms. *)
Lemma scaled_core_lipschitz Nin N h q : token_norm n d N ->
  lipschitz N N (core n d see) L -> lipschitz Nin N (rmul D (W_Q h)) q ->
  lipschitz Nin N (scaled_core h) (s * L * q).
Proof.
  intros HN HL HQ; assert (R0 := sqrt_pos s); assert (SC := lipschitz_scale n d N (sqrt s) HN R0).
  replace (s * L * q) with (sqrt s * (L * (sqrt s * q))) by (rewrite <- (sqrt_sqrt s) at 3; auto; ring).
  apply (lipschitz_comp _ _ N _ _ (scale (sqrt s))); auto.
  apply (lipschitz_comp _ _ N _ _ (core n d see)); auto.
  apply (lipschitz_comp _ _ N _ (rmul D (W_Q h)) (scale (sqrt s))); auto.
Qed.

(** A head of norms q of W_Q and r of W_Q^T W_V has the constant s L q r. *)
Lemma l2_head_lipschitz Nin N Nout h q r : token_norm n d N -> 0 <= r ->
  lipschitz N N (core n d see) L -> lipschitz Nin N (rmul D (W_Q h)) q ->
  lipschitz N Nout (rmul d (QV h)) r -> lipschitz Nin Nout (l2_head h) (s * L * (q * r)).
Proof.
  intros HN r0 HL HQ HR; replace (s * L * (q * r)) with (r * (s * L * q)) by ring.
  rewrite (functional_extensionality _ _ (l2_head_core h)).
  apply (lipschitz_comp _ _ N _ (scaled_core h)); auto using scaled_core_lipschitz.
Qed.

(** W_Q^T W_V W_O of a head. *)
Definition QVO h := rmul dv (W_O h) (QV h).

Lemma l2_multihead_core : l2_multihead = heads_concat d H scaled_core QVO.
Proof.
  extensionality x; extensionality i; extensionality b; apply rsum_ext; intros.
  rewrite l2_head_core, rmul_assoc; reflexivity.
Qed.

(** Sum over the heads, in any norms: |x W_Q^h| <= q_h |x| and |y W_Q^hT W_V^h W_O^h| <= m_h |y| give the
    constant s L sum_h q_h m_h. *)
Theorem multihead_sum Nin N Nout q m :
  token_norm n d N -> token_norm n D' Nout -> lipschitz N N (core n d see) L ->
  (forall h, (h < H)%nat -> lipschitz Nin N (rmul D (W_Q h)) (q h)) ->
  (forall h, (h < H)%nat -> 0 <= m h /\ lipschitz N Nout (rmul d (QVO h)) (m h)) ->
  lipschitz Nin Nout l2_multihead (s * L * rsum H (fun h => q h * m h)).
Proof.
  intros HN HN' HL HQ HM; rewrite l2_multihead_core, <- rsum_scal.
  apply (lipschitz_heads_sum n D' H everywhere Nin (fun h x => rmul d (QVO h) (scaled_core h x))); [auto|].
  intros h Hh; destruct (HM h Hh); replace (s * L * (q h * m h)) with (m h * (s * L * q h)) by ring.
  apply (lipschitz_comp _ _ N _ (scaled_core h)); auto using scaled_core_lipschitz.
Qed.

Variables (q r : nat -> R) (o : R).
Hypothesis o0 : 0 <= o.
Hypothesis HO : stacked_le dv D' H W_O o.
Hypothesis HQ : forall h, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h).

(** Heads side by side: |W_Q^h|_2 <= q_h, |W_Q^hT W_V^h|_2 <= r_h and |W_O|_2 <= o give the constant
    o (sum_h (s L q_h r_h)^2)^(1/2) in the 2-norm. *)
Theorem multihead_concat_2 : lipschitz (norm_2 n d) (norm_2 n d) (core n d see) L ->
  (forall h, (h < H)%nat -> 0 <= r h /\ opnorm_le d dv (QV h) (r h)) ->
  lipschitz (norm_2 n D) (norm_2 n D') l2_multihead (o * sqrt (rsum H (fun h => (s * L * (q h * r h))^2))).
Proof.
  intros HL HR; apply (lipschitz_heads_concat_2 n dv D'); auto using norm_2_ge0.
  intros h Hh; destruct (HQ h Hh), (HR h Hh).
  apply (l2_head_lipschitz _ (norm_2 n d)); auto using norm_2_is_norm, rmul_lipschitz_2.
Qed.

(** The same for the largest 2-norm of a token. *)
Theorem multihead_concat_token_max : lipschitz (token_max n d) (token_max n d) (core n d see) L ->
  (forall h, (h < H)%nat -> 0 <= r h /\ opnorm_le d dv (QV h) (r h)) ->
  lipschitz (token_max n D) (token_max n D') l2_multihead
    (o * sqrt (rsum H (fun h => (s * L * (q h * r h))^2))).
Proof.
  intros HL HR; apply (lipschitz_heads_concat_token_max n dv D'); auto; [intros; apply rmax_ge0|].
  intros h Hh; destruct (HQ h Hh), (HR h Hh).
  apply (l2_head_lipschitz _ (token_max n d)); auto using token_max_is_norm, rmul_lipschitz_token_max.
Qed.

(** Stacked matrices: |[W_Q^1 ... W_Q^H]|_2 <= b and |[M_1; ...; M_H]|_2 <= m, M_h = W_Q^hT W_V^h W_O^h,
    give the constant s L m b in the 2-norm. *)
Theorem multihead_fused b m : lipschitz (norm_2 n d) (norm_2 n d) (core n d see) L -> 0 <= b -> 0 <= m ->
  (forall p, norm_2 H d (fun h => vmul D p (W_Q h)) <= b * vnorm D p) -> stacked_le d D' H QVO m ->
  lipschitz (norm_2 n D) (norm_2 n D') l2_multihead (s * L * m * b).
Proof.
  intros HL b0 m0 HB HM x y _ _; rewrite l2_multihead_core, heads_concat_tsub; set (t := tsub x y).
  le_by (stacked_norm n d D' H (vnorm n) _ m _ (aggregate_vnorm n) (heads_inside_2 n H) m0 HM).
  replace (s * L * m * b * norm_2 n D t) with (m * (s * L * (b * norm_2 n D t))) by ring.
  apply Rmult_le_compat_l; [auto|]; assert (AV := aggregate_vnorm); assert (SL : 0 <= s * L) by pos.
  apply Rle_trans with (vnorm H (fun h => s * L * norm_2 n d (rmul D (W_Q h) t))).
  - apply (agg_le H _ (AV H)); intros h _; split; [pos|].
    assert (C : lipschitz (fun z => norm_2 n d (rmul D (W_Q h) z)) (norm_2 n d) (scaled_core h) (s * L * 1))
      by (apply scaled_core_lipschitz; auto using norm_2_is_norm; intros u w _ _; rewrite rmul_tsub; lra).
    rewrite Rmult_1_r in C; apply (C x y I I).
  - rewrite (agg_scal H _ (AV H)) by auto; apply Rmult_le_compat_l; [auto|]; unfold norm_2.
    rewrite (vnorm_swap H n (fun h i => vnorm d (rmul D (W_Q h) t i))), <- (agg_scal n _ (AV n)) by auto.
    apply (agg_le n _ (AV n)); intros i _; split; [pos|apply HB].
Qed.

(** |W_Q^T W_V|_2 <= |W_Q|_2 |W_V|_2. *)
Lemma QV_le h v : (h < H)%nat -> 0 <= v -> opnorm_le D dv (W_V h) v -> opnorm_le d dv (QV h) (q h * v).
Proof.
  intros Hh v0 HV p; destruct (HQ h Hh) as [q0 Q].
  change (vmul d p (QV h)) with (rmul d (QV h) (fun _ => p) O); unfold QV; rewrite <- rmul_assoc.
  le_by HV; rewrite (Rmult_comm (q h)), Rmult_assoc.
  apply Rmult_le_compat_l; [auto|apply (opnorm_transpose D d); auto].
Qed.
End MultiHead.

(** ** Theorem 3.2 of Kim, Papamakarios and Mnih: L2 multi-head attention of n tokens is Lipschitz *)

Section Theorem_3_2.
Variables (n D d dv D' H : nat) (W_Q W_V W_O : nat -> tokens).  (* dv = d, D' = D in the paper *)
Let c := phi_inv (INR (n - 1)).                 (* W((n-1)/e) *)
Let F := l2_multihead n D d dv H all_tokens (/ sqrt (INR d)) W_Q W_V W_O.
Hypothesis d0 : (1 <= d)%nat.

Section Infinity.
Variables (q1 q2 : nat -> R) (q v o : R).
Hypothesis q0 : 0 <= q.
Hypothesis v0 : 0 <= v.
Hypothesis o0 : 0 <= o.
(** |W_Q^h|_inf |W_Q^hT|_inf <= q, |W_V^hT|_inf <= v, |W_O^T|_inf <= o. *)
Hypothesis HQ : forall h, (h < H)%nat -> 0 <= q1 h /\ 0 <= q2 h /\ q1 h * q2 h <= q /\
  colsum_le d D (transpose (W_Q h)) (q1 h) /\ colsum_le D d (W_Q h) (q2 h).
Hypothesis HV : forall h, (h < H)%nat -> colsum_le D dv (W_V h) v.
Hypothesis HO : forall b, (b < D')%nat -> rsum H (fun h => rsum dv (fun a => Rabs (W_O h a b))) <= o.

Lemma multihead_inf see s L : 0 <= s -> 0 <= L -> lipschitz (norm_inf n d) (norm_inf n d) (core n d see) L ->
  lipschitz (norm_inf n D) (norm_inf n D') (l2_multihead n D d dv H see s W_Q W_V W_O)
    (o * (s * L * (q * v))).
Proof.
  intros s0 L0 HL; apply (lipschitz_heads_concat_inf n dv D'); [pos|auto|pos|auto|].
  intros h Hh; destruct (HQ h Hh) as [P1 [P2 [PQ [H1 H2]]]].
  apply (lipschitz_le _ _ _ _ (s * L * (q2 h * (v * q1 h)))); [pos| |].
  - apply Rmult_le_compat_l; [pos|].
    replace (q2 h * (v * q1 h)) with (q1 h * q2 h * v) by ring; apply Rmult_le_compat_r; auto.
  - apply (l2_head_lipschitz n D d see s W_Q W_V s0 L L0 _ (norm_inf n d));
      auto using norm_inf_is_norm, rmul_lipschitz_inf with pos.
    rewrite (functional_extensionality _ (fun y => rmul D (W_V h) (rmul d (transpose (W_Q h)) y)))
      by (intros; symmetry; apply rmul_assoc).
    apply (lipschitz_comp _ _ (norm_inf n D)); auto using rmul_lipschitz_inf.
Qed.

(** Infinity norm, as published:
    (4 c + 1/sqrt d) |W_O^T|_inf max_h |W_Q^h|_inf |W_Q^hT|_inf max_h |W_V^hT|_inf. *)
Theorem theorem_3_2_inf : lipschitz (norm_inf n D) (norm_inf n D') F ((4 * c + / sqrt (INR d)) * o * q * v).
Proof.
  assert (R1 := sqrt_ge1 d d0); assert (c0 : 0 <= c) by apply phi_inv_ge0.
  replace ((4 * c + / sqrt (INR d)) * o * q * v)
    with (o * (/ sqrt (INR d) * (1 + 4 * sqrt (INR d) * c) * (q * v))) by (field; lra).
  destruct (sharp_le_published (INR (n - 1)) d d0 (pos_INR _)) as [E1 E2].
  apply multihead_inf; [pos|pos|exact (sharp_upper_all _ _ _ (Rle_trans _ _ _ E1 E2))].
Qed.
End Infinity.

(** 2-norm, its exponent corrected:
    sqrt n / sqrt d (4 c + 1) (sum_h |W_Q^h|_2^4 |W_V^h|_2^2)^(1/2) |W_O|_2. *)
Theorem theorem_3_2_two q v o : 0 <= o -> stacked_le dv D' H W_O o ->
  (forall h, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h)) ->
  (forall h, (h < H)%nat -> 0 <= v h /\ opnorm_le D dv (W_V h) (v h)) ->
  lipschitz (norm_2 n D) (norm_2 n D') F
    (sqrt (INR n) / sqrt (INR d) * (4 * c + 1) * sqrt (rsum H (fun h => (q h)^4 * (v h)^2)) * o).
Proof.
  intros o0 HO HQ HV; assert (R1 := sqrt_ge1 d d0); assert (c0 : 0 <= c) by apply phi_inv_ge0.
  set (L := sqrt (INR n) * (4 * c + 1)); assert (L0 : 0 <= L) by (unfold L; pos).
  assert (s0 : 0 <= / sqrt (INR d)) by pos; set (k := / sqrt (INR d) * L).
  replace (_ * o) with (o * sqrt (rsum H (fun h => (k * (q h * (q h * v h)))^2))).
  2:{ replace (rsum H _) with (k^2 * rsum H (fun h => (q h)^4 * (v h)^2)) by sum_ring.
      rewrite sqrt_mult_alt, sqrt_pow2 by (unfold k; pos); unfold k, L; field; lra. }
  apply multihead_concat_2; auto.
  - unfold L; rewrite (Rplus_comm _ 1).
    apply core_lipschitz_2_any_mask; auto using all_self, all_others, pos_INR.
  - intros h Hh; destruct (HQ h Hh), (HV h Hh); split; [pos|apply (QV_le D d dv H W_Q W_V); auto].
Qed.
End Theorem_3_2.
