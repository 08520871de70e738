(** Dot-product self-attention has no Lipschitz constant (Kim, Papamakarios and Mnih, ICML 2021,
    Theorem 3.1).  The lemma that shows it serves L2 attention with untied weights too. *)
From Lipsa Require Import Sums Tokens Norms Core Heads Kernel.

Lemma vmul_affine D h k p q W b :
  vmul D (fun a => h * p a + k * q a) W b = h * vmul D p W b + k * vmul D q W b.
Proof. unfold vmul; rewrite <- !rsum_scal, <- rsum_plus; apply rsum_ext; intros; ring. Qed.

Section Indifference.
Variables (n D D' : nat) (see : mask) (score : tokens -> nat -> nat -> R) (W : tokens).
Variables (N N' : tokens -> R) (i j o : nat) (v u : nat -> R) (p q r : R) (s0 : R -> R -> R).
Hypotheses (norm_in : token_norm n D N) (norm_out : token_norm n D' N').
Hypotheses (Hi : (i < n)%nat) (Hj : (j < n)%nat) (Ho : (o < D')%nat).
Hypotheses (ne : i <> j) (see_i : see i i = true) (see_j : see i j = true).

(** All tokens are at xi v but token j, which is t u away from them. *)
Definition one_apart xi t : tokens := fun l a => xi * v a + delta j l * t * u a.

(** Token i scores all tokens alike but token j, which it scores higher by an affine function of xi. *)
Definition rise xi t := t * (p * xi + q) - r * t^2.
Hypothesis scores : forall xi t l, score (one_apart xi t) i l = s0 xi t + delta j l * rise xi t.
Hypothesis p0 : p <> 0.
Hypothesis uW0 : vmul D u W o <> 0.

(** The number of tokens that i sees. *)
Let seen := rsum n (vis see i).

Lemma seen_ge2 : 2 <= seen.
Proof.
  generalize (rsum_ge_two n (vis see i) i j Hi Hj ne (fun l _ => vis_ge0 see i l)); fold seen.
  unfold vis; rewrite see_i, see_j; lra.
Qed.

Lemma indifferent_output xi t (e := exp (rise xi t)) :
  rmul D W (attention n see score (one_apart xi t)) i o
  = xi * vmul D v W o + e / (e - 1 + seen) * t * vmul D u W o.
Proof.
  set (x := one_apart xi t); set (E := exp (s0 xi t)); assert (e0 : 0 < e) by apply exp_pos.
  assert (E0 : 0 < E) by apply exp_pos; assert (M := seen_ge2).
  assert (w : forall l, weight see score x i l = E * (vis see i l + delta j l * (e - 1))).
  { intros l; unfold weight, x, vis, E; rewrite scores, exp_plus.
    destruct (delta_cases j l) as [[<- ->]|[_ ->]];
      [rewrite see_j, (Rmult_1_l (rise _ _)); fold e|rewrite Rmult_0_l, exp_0]; ring. }
  assert (T : total n see score x i = E * (e - 1 + seen)) by (unfold total;
    rewrite (rsum_ext n _ _ (fun l _ => w l)), rsum_scal, rsum_plus, rsum_delta by auto; fold seen; ring).
  unfold rmul; rewrite <- vmul_affine; f_equal; extensionality a; unfold attention.
  rewrite (rsum_ext n _ (fun l => / total n see score x i * (xi * v a * weight see score x i l
    + delta j l * (weight see score x i l * (t * u a)))))
    by (intros; unfold P, x at 3, one_apart, Rdiv; ring).
  rewrite rsum_scal, rsum_plus, rsum_scal, rsum_delta, w, delta_same by auto; fold (total n see score x i).
  rewrite T; unfold vis; rewrite see_j; field; lra.
Qed.

(** From where the rise is 0, a move of all tokens by v / (p t) makes it 1; the output of token i
    moves in proportion to t. *)
Lemma indifferent_not_lipschitz K :
  ~ lipschitz N N' (fun x => rmul D W (attention n see score x)) K.
Proof.
  intros L; destruct (entry_le_norm _ _ _ norm_out) as [b [b0 Hb]]; assert (M := seen_ge2).
  pose (e := exp 1); assert (e2 : 2 <= e) by (unfold e; generalize (exp_ineq1_le 1); lra).
  pose (g := e / (e - 1 + seen) - 1 / seen); set (U := g * vmul D u W o); set (V := / p * vmul D v W o).
  assert (g0 : g <> 0).
  { unfold g; replace (_ - _) with ((e - 1) * (seen - 1) * / (seen * (e - 1 + seen))) by (field; lra).
    apply Rgt_not_eq, Rmult_lt_0_compat; [nra|apply Rinv_0_lt_compat; nra]. }
  assert (U0 : 0 < Rabs U) by (apply Rabs_pos_lt, Rmult_integral_contrapositive; auto).
  pose (C := b * (K * (Rabs (/ p) * N (fun _ => v))) + Rabs V).
  assert (Main : forall t, 0 < t -> t^2 * Rabs U <= C).
  { intros t t0; assert (t1 := Rinv_0_lt_compat t t0); pose (xi := (r * t - q) / p).
    pose (x := one_apart (xi + / (p * t)) t); pose (y := one_apart xi t).
    assert (E := Rle_trans _ _ _ (Hb _ i o Hi Ho) (Rmult_le_compat_l b _ _ b0 (L x y I I))).
    replace (tsub x y) with (scale (/ t) (scale (/ p) (fun _ => v))) in E
      by (extensionality l; extensionality a; unfold x, y, tsub, one_apart, scale; field; lra).
    rewrite !(norm_scale _ _ _ norm_in) in E; unfold tsub, x, y in E; rewrite !indifferent_output in E.
    replace (rise (xi + _) t) with 1 in E by (unfold rise, xi; field; lra).
    replace (rise xi t) with 0 in E by (unfold rise, xi; field; lra); rewrite exp_0 in E; fold e in E.
    replace (_ - _) with (/ t * (V + t^2 * U)) in E by (unfold U, V, g; field; lra).
    rewrite Rabs_mult, (Rabs_pos_eq (/ t)) in E by lra.
    assert (F : Rabs (V + t^2 * U) <= b * (K * (Rabs (/ p) * N (fun _ => v))))
      by (apply Rmult_le_reg_l with (/ t); [exact t1|lra]).
    rewrite <- (Rabs_pos_eq (t^2)), <- Rabs_mult by apply pow2_ge_0.
    replace (t^2 * U) with (V + t^2 * U - V) by ring.
    generalize (Rabs_minus_le (V + t^2 * U) V); unfold C; lra. }
  assert (C1 := Main 1 Rlt_0_1); assert (CU : C / Rabs U * Rabs U = C) by (field; lra).
  assert (Q : 1 <= C / Rabs U) by (apply Rle_div_r; lra); generalize (Main (C / Rabs U + 1) ltac:(lra)); nra.
Qed.
End Indifference.

Definition nonzero m n (A : tokens) := exists a b, (a < m)%nat /\ (b < n)%nat /\ A a b <> 0.

(** If A W_K^T <> 0 and W <> 0 then <v A, u W_K> <> 0 and u W <> 0 for some v and u. *)
Lemma directions D D' d A W_K W :
  nonzero D D (rmul d (transpose W_K) A) -> nonzero D D' W ->
  exists v u o, (o < D')%nat /\ vdot d (vmul D v A) (vmul D u W_K) <> 0 /\ vmul D u W o <> 0.
Proof.
  intros [a [b [Ha [Hb F]]]] [c [o [Hc [Ho G]]]]; set (f := rmul d (transpose W_K) A a) in *.
  assert (V : vmul D (delta a) A = A a)
    by (extensionality e; apply (rsum_delta D a (fun k => A k e)), Ha).
  assert (E : forall u, vdot d (A a) (vmul D u W_K) = vdot D u f)
    by (intros; rewrite vdot_comm; apply vdot_vmul).
  assert (B : forall k g, (k < D)%nat -> vdot D (delta k) g = g k) by (intros; apply rsum_delta; auto).
  assert (H : exists u, vdot D u f <> 0 /\ vdot D u (transpose W o) <> 0).
  { destruct (Req_dec (W b o) 0) as [Wb|Wb]; [|exists (delta b); rewrite !B; auto].
    destruct (Req_dec (f c) 0) as [fc|fc]; [|exists (delta c); rewrite !B; auto].
    exists (fun k => delta b k + delta c k); rewrite !vdot_plus, !B by auto; unfold transpose; lra. }
  destruct H as [u H]; exists (delta a), u, o; rewrite V, E; auto.
Qed.

(** Some token sees itself and another one. *)
Definition sees_two n (see : mask) :=
  exists i j, (i < n)%nat /\ (j < n)%nat /\ i <> j /\ see i i = true /\ see i j = true.

(** s <x_i W_Q + b_Q, x_j W_K + b_K> *)
Definition dot_score D d s (W_Q W_K : tokens) (b_Q b_K : nat -> R) (x : tokens) i j :=
  s * vdot d (fun c => vmul D (x i) W_Q c + b_Q c) (fun c => vmul D (x j) W_K c + b_K c).

(** Dot-product attention has no Lipschitz constant in any norms when W_Q W_K^T and the value map W are
    not 0, with any biases and any mask that shows some token itself and another one.  (A value bias
    moves all outputs alike and changes nothing.) *)
Theorem theorem_3_1_dot_product_not_lipschitz n D D' d see s W_Q W_K b_Q b_K W N N' K :
  sees_two n see -> s <> 0 -> nonzero D D (rmul d (transpose W_K) W_Q) -> nonzero D D' W ->
  token_norm n D N -> token_norm n D' N' ->
  ~ lipschitz N N' (fun x => rmul D W (attention n see (dot_score D d s W_Q W_K b_Q b_K) x)) K.
Proof.
  intros [i [j [Hi [Hj [ne [Si Sj]]]]]] s0 HA HW HN HN'.
  destruct (directions D D' d W_Q W_K W HA HW) as [v [u [o [Ho [U1 U2]]]]].
  pose (xQ := vmul D v W_Q); pose (xK := vmul D v W_K); set (k := vmul D u W_K) in *.
  apply (indifferent_not_lipschitz n D D' see _ W N N' i j o v u (s * vdot d xQ k) (s * vdot d b_Q k) 0
    (fun xi _ => s * vdot d (fun c => xi * xQ c + b_Q c) (fun c => xi * xK c + b_K c))); auto.
  intros xi t l; unfold dot_score, rise, one_apart, vdot.
  rewrite (rsum_ext d _ (fun c => (xi * xQ c + b_Q c) * (xi * xK c + b_K c)
    + delta j l * t * (xi * (xQ c * k c) + b_Q c * k c)))
    by (intros; rewrite !vmul_affine, (delta_diff j i) by auto; fold xQ xK k; ring).
  rewrite rsum_plus, rsum_scal, rsum_plus, rsum_scal; ring.
Qed.

Lemma dot_score_plain D d s W_Q W_K :
  dot_score D d s W_Q W_K (fun _ => 0) (fun _ => 0)
  = fun x i j => s * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K).
Proof.
  extensionality x; extensionality i; extensionality j; unfold dot_score; f_equal.
  apply rsum_ext; intros; ring.
Qed.

(** The setting of the paper: two tokens or more, no mask, no biases, scores divided by sqrt d. *)
Corollary paper_dot_product_not_lipschitz n D d (W_Q W_K W_V : tokens) N N' K
  (score := fun x i j => / sqrt (INR d) * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K)) :
  (2 <= n)%nat -> nonzero D D (rmul d (transpose W_K) W_Q) -> nonzero D d W_V ->
  token_norm n D N -> token_norm n d N' ->
  ~ lipschitz N N' (fun x => rmul D W_V (attention n all_tokens score x)) K.
Proof.
  intros n2 HA HW HN HN'; unfold score; rewrite <- dot_score_plain.
  apply theorem_3_1_dot_product_not_lipschitz with (D' := d); auto.
  - exists 0%nat, 1%nat; repeat split; auto; lia.
  - destruct d as [|d]; [destruct HA as [a [b [_ [_ H]]]]; elim H; reflexivity|].
    apply Rinv_neq_0_compat, Rgt_not_eq, sqrt_lt_R0, lt_0_INR; lia.
Qed.

(** ** Several heads *)

(** Heads side by side: if the output of head h can be read off the layer's output, through a matrix R with
    W_O^h R = I and W_O^g R = 0 for the other heads, and head h is not Lipschitz, then the layer is not. *)
Lemma concat_not_lipschitz n D D' dv H f (W_O : nat -> tokens) R h N N' :
  token_norm n D N -> token_norm n D' N' -> (h < H)%nat ->
  (forall g a b, (g < H)%nat -> (a < dv)%nat -> (b < dv)%nat ->
    vmul D' (W_O g a) R b = delta h g * delta a b) ->
  (forall K, ~ lipschitz N (norm_inf n dv) (f h) K) ->
  forall K, ~ lipschitz N N' (heads_concat dv H f W_O) K.
Proof.
  intros HN HN' Hh HR Hf K L; destruct (norms_equivalent n D' _ _ (norm_inf_is_norm n D') HN') as [c [c0 C]].
  set (w := rsum dv (fun b => rsum D' (fun o => Rabs (R o b)))).
  assert (w0 : 0 <= w) by (apply rsum_ge0; intros; apply rsum_ge0; intros; apply Rabs_pos).
  assert (HW : colsum_le D' dv R w).
  { intros b Hb; apply (rsum_ge_term dv (fun b => rsum D' (fun o => Rabs (R o b)))); auto.
    intros; apply rsum_ge0; intros; apply Rabs_pos. }
  apply (Hf (w * (c * K))); intros x y _ _; set (F := heads_concat dv H f W_O) in *.
  assert (E : forall x i b, (b < dv)%nat -> rmul D' R (F x) i b = f h x i b).
  { intros z i b Hb; unfold F, heads_concat, rmul at 1, vmul at 1.
    rewrite (rsum_ext D' _ (fun o => rsum H (fun g => rmul dv (W_O g) (f g z) i o * R o b)))
      by (intros; symmetry; apply rsum_scal_r).
    rewrite rsum_swap, (rsum_ext H _ (fun g => delta h g * f g z i b)); [apply (rsum_delta H h (fun g => f g z i b)), Hh|].
    intros g Hg; unfold rmul, vmul.
    rewrite (rsum_ext D' _ (fun o => rsum dv (fun a => f g z i a * (W_O g a o * R o b))))
      by (intros; rewrite <- rsum_scal_r; apply rsum_ext; intros; ring).
    rewrite rsum_swap, (rsum_ext dv _ (fun a => delta b a * (delta h g * f g z i a))).
    - apply (rsum_delta dv b (fun a => delta h g * f g z i a)), Hb.
    - intros a Ha; rewrite rsum_scal; assert (V := HR g a b Hg Ha Hb); unfold vmul in V; rewrite V.
      replace (delta b a) with (delta a b) by (unfold delta; rewrite Nat.eqb_sym; reflexivity); ring. }
  apply Rle_trans with (norm_inf n dv (tsub (rmul D' R (F x)) (rmul D' R (F y)))).
  - apply norm_inf_le; [apply rmax_ge0|]; intros i b Hi Hb; unfold tsub at 1; rewrite <- !E by auto.
    apply (entry_le_norm_inf n dv (tsub (rmul D' R (F x)) (rmul D' R (F y)))); auto.
  - eapply Rle_trans; [apply (rmul_lipschitz_inf n D' dv R w w0 HW (F x) (F y) I I)|].
    rewrite !Rmult_assoc; apply Rmult_le_compat_l; [auto|]; eapply Rle_trans; [apply C|].
    apply Rmult_le_compat_l; [auto|apply (L x y I I)].
Qed.

(** Theorem 3.1 for several heads side by side: one head with W_Q W_K^T and W_V not 0 that can be read off
    the output suffices; with an invertible W_O every head can. *)
Theorem theorem_3_1_multihead n D D' d dv H see s W_Q W_K W_V W_O b_Q b_K R h N N' K :
  sees_two n see -> s <> 0 -> (h < H)%nat ->
  nonzero D D (rmul d (transpose (W_K h)) (W_Q h)) -> nonzero D dv (W_V h) ->
  (forall g a b, (g < H)%nat -> (a < dv)%nat -> (b < dv)%nat ->
    vmul D' (W_O g a) R b = delta h g * delta a b) ->
  token_norm n D N -> token_norm n D' N' ->
  ~ lipschitz N N' (heads_concat dv H (fun g x =>
      rmul D (W_V g) (attention n see (dot_score D d s (W_Q g) (W_K g) (b_Q g) (b_K g)) x)) W_O) K.
Proof.
  intros S s0 Hh HQ HV HR HN HN'; apply (concat_not_lipschitz n D D' dv H _ W_O R h); auto; intros k.
  apply (theorem_3_1_dot_product_not_lipschitz n D dv d see s (W_Q h) (W_K h)); auto using norm_inf_is_norm.
Qed.
