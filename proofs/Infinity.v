(** The infinity norm of L2 attention: the core map of tokens that see k others has the Lipschitz constant
    1 + kappa W(k e^(-1-2/kappa)), kappa = 2 (1 + sqrt d), the least one for odd n without a mask. *)
From Lipsa Require Import Sums Phi KeyLemma Tokens Norms Core.

(** K is a Lipschitz constant of the core map in the infinity norm. *)
Notation inf_lipschitz n d see K := (lipschitz (norm_inf n d) (norm_inf n d) (core n d see) K).

Definition kappa d := 2 * (1 + sqrt (INR d)).

(** W(k e^(-1-2/kappa)). *)
Definition sharp_root k d := phi_inv (k * exp (- (2 / kappa d))).
Definition sharp_lip k d := 1 + kappa d * sharp_root k d.

Lemma sqrt_ge1 d : (0 < d)%nat -> 1 <= sqrt (INR d).
Proof. intros H; rewrite <- sqrt_1; apply sqrt_le_1_alt, (le_INR 1), H. Qed.

Lemma kappa_ge2 d : 2 <= kappa d.
Proof. unfold kappa; generalize (sqrt_pos (INR d)); lra. Qed.
Lemma inv_kappa_pos d : 0 < 2 / kappa d.
Proof. assert (H := kappa_ge2 d); pos. Qed.
#[global] Hint Extern 1 (0 <= sharp_root _ _) => apply phi_inv_ge0 : pos.

Lemma exp_neg_le1 x : 0 <= x -> exp (- x) <= 1.
Proof. intros [H|<-]; [rewrite <- exp_0; apply Rlt_le, exp_increasing; lra|rewrite Ropp_0, exp_0; lra]. Qed.

Lemma sharp_root_spec k d (r := sharp_root k d) : 0 <= k -> k * exp (- (r + 2 / kappa d + 1)) = r.
Proof.
  intros H; unfold r, sharp_root; set (y := k * exp (- (2 / kappa d))).
  rewrite <- (phi_inv_root y) at 2 by (unfold y; pos).
  unfold y at 2; rewrite Rmult_assoc, <- exp_plus; do 2 f_equal; ring.
Qed.

(** ** Upper bound, for every mask *)

(** What a token at squared distance q adds to a row of the derivative. *)
Definition share d q := Rmax (1 + 2 * sqrt (INR d) * q) (kappa d * q - 1).

(** One term of the derivative: p = z_i - z_j, and the directions v of token i, w of token j. *)
Section Term.
Variables (d b : nat) (p v w : nat -> R) (m M : R).
Hypothesis Hb : (b < d)%nat.
Hypothesis Hv : forall a, (a < d)%nat -> Rabs (v a) <= M.
Hypothesis Hw : forall a, (a < d)%nat -> Rabs (w a) <= M.
Let x := p b - m.
Let q := vdot d p p.
Let term := w b + x * (2 * vdot d p (fun a => v a - w a)) - 2 * m * v b * x.

(** Coordinate b, and the others by the inequality of the means with weight t. *)
Lemma term_split t : 0 < t -> Rabs term <= M * (Rabs (1 - 2 * x * p b) + 2 * x^2
                    + (2 * (INR d - 1) / t * x^2 + 2 * t * (q - p b * p b))).
Proof.
  intros T; assert (O : forall f, rsum d (fun a => (1 - delta b a) * f a) = rsum d f - f b)
    by (intros f; rewrite <- (rsum_delta d b f Hb); sum_ring).
  replace term with (w b * (1 - 2 * x * p b) + x^2 * (2 * v b)
    + rsum d (fun a => (1 - delta b a) * (2 * (x * p a) * (v a - w a)))).
  2:{ rewrite O; unfold term, vdot; replace m with (p b - x) by (unfold x; ring).
      rewrite (rsum_ext d _ (fun a => 2 * x * (p a * (v a - w a)))), rsum_scal by (intros; ring); ring. }
  le_by Rabs_triang; rewrite (Rmult_plus_distr_l M); apply Rplus_le_compat.
  - le_by Rabs_triang; rewrite !Rabs_mult, (Rabs_pos_eq (x^2)), (Rabs_pos_eq 2) by pos.
    generalize (Hw b Hb) (Hv b Hb) (Rabs_pos (1 - 2 * x * p b)) (pow2_ge_0 x); nra.
  - replace (M * _) with (rsum d (fun a => (1 - delta b a) * ((/ t * x^2 + t * (p a * p a)) * (2 * M))))
      by (rewrite O, rsum_scal_r, rsum_plus, rsum_const, rsum_scal; unfold q, vdot; field; lra).
    le_by rsum_abs; apply rsum_le; intros a Ha; destruct (delta_cases b a) as [[_ ->]|[_ ->]];
      [rewrite Rminus_diag_eq, !Rmult_0_l, Rabs_R0 by auto; lra|].
    rewrite Rminus_0_r, !Rmult_1_l, Rabs_mult; apply Rmult_le_compat; auto using Rabs_pos.
    + assert (E : forall z, 2 * (x * z) <= / t * x^2 + t * z^2).
      { intros z; assert (H : 0 <= t * (/ t * x - z)^2) by pos.
        replace (t * _) with (/ t * x^2 + t * z^2 - 2 * (x * z)) in H by (field; lra); lra. }
      apply Rabs_le; generalize (E (p a)) (E (- p a)); lra.
    + le_by Rabs_minus_le; generalize (Hv a Ha) (Hw a Ha); lra.
Qed.

(** With the best t; the term linear in x has mean 0 in the row. *)
Lemma term_le : Rabs term <= M * (share d q - (4 * sqrt (INR d) + 2) * m * x).
Proof.
  assert (S := term_split); assert (M0 : 0 <= M) by (eapply Rle_trans; [apply Rabs_pos|apply (Hv b Hb)]).
  set (s := sqrt (INR d)); assert (S1 : 1 <= s) by (apply sqrt_ge1; lia).
  replace (INR d) with (s * s) in S by apply sqrt_sqrt, pos_INR.
  unfold share, kappa; fold s.
  generalize (Rmax_l (1 + 2 * s * q) (2 * (1 + s) * q - 1)) (Rmax_r (1 + 2 * s * q) (2 * (1 + s) * q - 1))
    (pow2_ge_0 x) (pow2_ge_0 m) (Rmult_le_pos s _ ltac:(lra) (pow2_ge_0 m)); intros L1 L2 X N1 N2.
  assert (EP : p b = x + m) by (unfold x; ring); rewrite EP in S; clearbody term x.
  destruct (Rle_lt_dec 0 (1 - 2 * x * (x + m))) as [G|G].
  - le_by (S s); [lra|apply Rmult_le_compat_l; [auto|]]; rewrite Rabs_pos_eq by auto.
    replace (2 * (s * s - 1) / s) with (2 * s - 2 * / s) by (field; lra).
    assert (0 <= / s * x^2) by pos; lra.
  - le_by (S (s + 1)); [lra|apply Rmult_le_compat_l; [auto|]]; rewrite Rabs_left by auto.
    replace (2 * (s * s - 1) / (s + 1)) with (2 * (s - 1)) by (field; lra); lra.
Qed.
End Term.

(** (share(q) - sharp_lip) e^-q is at most kappa e^-(r+2/kappa+1). *)
Lemma share_le d q r : 0 <= q -> 0 <= r ->
  exp (- q) * (share d q - (1 + kappa d * r)) <= kappa d * exp (- (r + 2 / kappa d + 1)).
Proof.
  intros Q R0; generalize (kappa_ge2 d) (inv_kappa_pos d); set (y := 2 / kappa d); intros KP Y.
  assert (KY : kappa d * y = 2) by (unfold y; field; lra).
  assert (KS : sqrt (INR d) = kappa d / 2 - 1) by (unfold kappa; field).
  unfold share; rewrite KS; apply Rmax_case.
  - generalize (shifted_exp_max q r) (exp_pos (- q)) (exp_pos (- y)) (exp_neg_le1 y ltac:(lra))
      (exp_ineq1_le (- y)); intros S EQ EY E1 E2.
    replace (1 + _ - _) with (kappa d * ((1 - y) * q - r))
      by (generalize (Rmult_eq_compat_r q _ _ KY); lra).
    assert (A : (1 - y) * q - r <= exp (- y) * (q - r)) by nra.
    apply Rle_trans with (kappa d * (exp (- y) * ((q - r) * exp (- q)))).
    + generalize (Rmult_le_compat_l (kappa d * exp (- q)) _ _ ltac:(pos) A); lra.
    + replace (- (r + y + 1)) with (- y + - (r + 1)) by ring; rewrite exp_plus.
      repeat apply Rmult_le_compat_l; lra.
  - replace (kappa d * q - 1 - _) with (kappa d * (q - (r + y))) by lra.
    generalize (Rmult_le_compat_l (kappa d) _ _ ltac:(lra) (shifted_exp_max q (r + y))); lra.
Qed.

(** With any mask by which every token sees itself and at most k others, the core map of L2 attention in d
    dimensions has the Lipschitz constant 1 + kappa W(k e^(-1-2/kappa)) in the infinity norm. *)
Theorem core_sharp_upper n d see k : sees_self n see -> 0 <= k -> others_seen n see k ->
  inf_lipschitz n d see (sharp_lip k d).
Proof.
  intros self k0 others; set (r := sharp_root k d); assert (R0 : 0 <= r) by (unfold r; pos).
  assert (KP := kappa_ge2 d); assert (rows := self_row n see self).
  apply (lipschitz_inf n d see _ rows _ (l2_score_derivative d));
    [apply everywhere_convex|unfold sharp_lip; fold r; pos|].
  intros z v i b _ Hi Hb; set (M := norm_inf n d v).
  pose (m := z i b - attention n see (l2_score d) z i b); pose (x := fun j => z i b - z j b - m).
  set (p := P n see (l2_score d) z i).
  assert (mean : rsum n (fun j => p j * x j) = 0).
  { replace (rsum n _) with (rsum n p * attention n see (l2_score d) z i b - rsum n (fun j => p j * z j b))
      by (unfold x, m; sum_ring).
    unfold p; rewrite P_sum by auto; unfold attention; ring. }
  assert (H : rsum n (fun j => p j * share d (sqdist d z i j)) <= sharp_lip k d).
  { apply (row_mean_le n d see self k others z i _ _ (kappa d * exp (- (r + 2/kappa d + 1)))); [auto|pos|..].
    - rewrite <- Rmult_assoc, (Rmult_comm k), Rmult_assoc; unfold r; rewrite sharp_root_spec by auto.
      rewrite sqdist_same; unfold share; rewrite Rmax_left; unfold sharp_lip; lra.
    - intros j _; apply share_le; pos. }
  apply Rle_trans with (rsum n (fun j => p j * (M * (share d (sqdist d z i j)
                          - (4 * sqrt (INR d) + 2) * m * x j)))).
  - replace (jvp _ _ _ _ _ _ _ _) with (rsum n (fun j => p j * (v j b + x j * (2 * vdot d
      (fun a => z i a - z j a) (fun a => v i a - v j a)) - 2 * m * v i b * x j))
      + 2 * m * v i b * rsum n (fun j => p j * x j)) by (unfold jvp, l2_dscore, x, m, p; sum_ring).
    rewrite mean, Rmult_0_r, Rplus_0_r; le_by rsum_abs; apply rsum_le; intros j Hj.
    assert (P0 : 0 <= p j) by (apply P_ge0; auto).
    rewrite Rabs_mult, (Rabs_pos_eq (p j)) by auto; apply Rmult_le_compat_l; [auto|].
    unfold sqdist; rewrite vnorm_sq.
    apply (term_le d b (fun a => z i a - z j a) (v i) (v j)); intros; auto; apply entry_le_norm_inf; auto.
  - apply Rle_trans with (rsum n (fun j => p j * share d (sqdist d z i j)) * M
      - M * (4 * sqrt (INR d) + 2) * m * rsum n (fun j => p j * x j)); [apply Req_le; sum_ring|].
    rewrite mean; generalize (Rmult_le_compat_r M _ _ (rmax_ge0 n _ : 0 <= M) H); lra.
Qed.

(** ** Lower bound: one token at 0, mu at y, mv at -y *)

(** The derivative along v, all of whose entries are 1 or -1, is at most every Lipschitz constant. *)
Lemma jvp_le_lipschitz n d see z v i a K :
  sees_self n see -> (forall j b, Rabs (v j b) = 1) -> (i < n)%nat -> (a < d)%nat ->
  inf_lipschitz n d see K -> jvp n see (l2_score d) (l2_dscore d) z v i a <= K.
Proof.
  intros self V Hi Ha L; le_by Rle_abs.
  assert (D := attention_derivative n see _ (self_row n see self) _ (l2_score_derivative d) z v i a 0 Hi).
  rewrite line_0 in D; apply (is_derive_lipschitz _ _ _ K D); intros t.
  assert (V1 : norm_inf n d v = 1).
  { apply Rle_antisym; [apply norm_inf_le; [lra|intros; rewrite V; lra]|].
    rewrite <- (V i a); apply entry_le_norm_inf; auto. }
  generalize (L (line z v t) (line z v 0) I I).
  replace (tsub (line z v t) _) with (scale (t - 0) v) by token_ring.
  rewrite (norm_scale _ _ _ (norm_inf_is_norm n d)), V1, Rmult_1_r.
  apply Rle_trans, (entry_le_norm_inf n d (tsub (core n d see _) (core n d see _))); auto.
Qed.

(** A multiple y of (1 + sqrt d, 1, ..., 1) with |y|^2 = Q. *)
Lemma steepest d Q : (0 < d)%nat -> 0 <= Q -> exists y, vdot d y y = Q /\ 4 * y O * rsum d y = kappa d * Q.
Proof.
  intros Hd HQ; unfold kappa; set (s := sqrt (INR d)); assert (S1 : 1 <= s) by (apply sqrt_ge1, Hd).
  assert (S2 : INR d = s * s) by (symmetry; apply sqrt_sqrt, pos_INR).
  pose (h := sqrt (Q / (2 * s * (s + 1)))).
  assert (H2 : h * h = Q / (2 * s * (s + 1))) by (apply sqrt_sqrt; pos).
  exists (fun a => h * (1 + delta 0 a * s)); split.
  - unfold vdot; rewrite (rsum_ext d _ (fun a => h * h * (1 + delta 0 a * (2 * s + s * s))))
      by (intros a _; destruct (delta_cases 0 a) as [[_ ->]|[_ ->]]; ring).
    rewrite rsum_scal, rsum_plus, rsum_const, (rsum_delta d 0 (fun _ => 2 * s + s * s)), H2, S2 by auto.
    field; lra.
  - rewrite rsum_scal, rsum_plus, rsum_const, (rsum_delta d 0 (fun _ => s)), delta_same, S2 by auto.
    replace (4 * _ * _) with (4 * (h * h) * (s * (1 + s)^2)) by ring; rewrite H2; field; lra.
Qed.

Section Clusters.
Variables (mu mv d : nat) (Q : R) (y : nat -> R).
Hypothesis norm_y : vdot d y y = Q.
Let n := S (mu + mv).
Let e := exp (- Q).
Let mass := (INR mu + INR mv) * e.

Lemma mass_pos : 0 < 1 + mass.
Proof. apply Rplus_lt_le_0_compat; unfold mass, e; pos. Qed.

(** The side of token k, and the tokens. *)
Definition side k : R := match k with O => 0 | S j => if Nat.ltb j mu then 1 else -1 end.
Definition clusters : tokens := fun k a => side k * y a.
(** Token 0 moves against all others. *)
Definition against : tokens := fun k _ => 1 - 2 * (side k)^2.

Lemma rsum_side f : rsum n (fun k => f (side k)) = f 0 + INR mu * f 1 + INR mv * f (-1).
Proof.
  change n with (1 + (mu + mv))%nat; rewrite !rsum_app, <- !rsum_const, Rplus_assoc.
  simpl; rewrite Rplus_0_l; do 2 f_equal; apply rsum_ext; intros j Hj.
  - apply Nat.ltb_lt in Hj; rewrite Hj; reflexivity.
  - replace (Nat.ltb (mu + j) mu) with false by (symmetry; apply Nat.ltb_ge; lia); reflexivity.
Qed.

Let p := P n all_tokens (l2_score d) clusters 0.

(** Means under the attention of token 0. *)
Lemma mean_side f :
  rsum n (fun k => p k * f (side k)) = (f 0 + e * (INR mu * f 1 + INR mv * f (-1))) / (1 + mass).
Proof.
  pose (g := fun x => exp (- (x^2 * Q))); assert (G : g 0 = 1 /\ g 1 = e /\ g (-1) = e)
    by (repeat split; [rewrite <- exp_0| |]; unfold g, e; f_equal; ring); destruct G as [G0 [G1 G2]].
  assert (W : forall k, weight all_tokens (l2_score d) clusters 0%nat k = g (side k)).
  { intros k; unfold weight, vis, all_tokens, l2_score, sqdist, clusters, g.
    rewrite vnorm_sq, Rmult_1_l, <- norm_y; do 2 f_equal; simpl side; unfold vdot; sum_ring. }
  assert (T : total n all_tokens (l2_score d) clusters 0%nat = 1 + mass).
  { unfold total; rewrite (rsum_ext n _ _ (fun k _ => W k)), rsum_side, G0, G1, G2; unfold mass; ring. }
  rewrite (rsum_ext n _ (fun k => (fun x => g x * f x / (1 + mass)) (side k)))
    by (intros; unfold p, P; rewrite W, T; unfold Rdiv; ring).
  rewrite (rsum_side (fun x => g x * f x / (1 + mass))), G0, G1, G2; unfold Rdiv; ring.
Qed.

Lemma clusters_jvp (t := (INR mu - INR mv) * e / (1 + mass)) :
  jvp n all_tokens (l2_score d) (l2_dscore d) clusters against 0%nat 0%nat =
  (1 - mass) / (1 + mass) + 4 * y O * rsum d y * (mass / (1 + mass) - t^2).
Proof.
  assert (M1 := mass_pos); assert (A : attention n all_tokens (l2_score d) clusters 0%nat 0%nat = t * y O).
  { eapply eq_trans; [apply (mean_side (fun x => x * y O))|unfold t; field; lra]. }
  unfold jvp; rewrite A; f_equal.
  - eapply eq_trans; [apply (mean_side (fun x => 1 - 2 * x^2))|unfold mass in *; field; lra].
  - rewrite (rsum_ext n _ (fun j => p j * (fun x => (x - t) * x^3 * (4 * y O * rsum d y)) (side j))).
    + rewrite (mean_side (fun x => (x - t) * x^3 * (4 * y O * rsum d y))); unfold t, mass in *; field; lra.
    + intros j _; fold p; unfold l2_dscore, vdot, clusters, against.
      replace (rsum d _) with (- (2 * (side j)^3) * rsum d y) by (simpl side; sum_ring); ring.
Qed.
End Clusters.

(** One token at 0, mu at y, mv at -y: no Lipschitz constant is less than this, for any Q = |y|^2. *)
Theorem clusters_lower mu mv d Q K (n := S (mu + mv)) (mass := INR (mu + mv) * exp (- Q)) :
  (0 < d)%nat -> 0 <= Q -> inf_lipschitz n d all_tokens K ->
  (2 + kappa d * Q * mass) / (1 + mass) - 1
  - kappa d * Q * ((INR mu - INR mv) * exp (- Q) / (1 + mass))^2 <= K.
Proof.
  intros Hd HQ L; destruct (steepest d Q Hd HQ) as [y [Y1 Y2]].
  apply (jvp_le_lipschitz n d all_tokens (clusters mu y) (against mu) 0%nat 0%nat) in L; auto.
  - unfold n in L; rewrite (clusters_jvp mu mv d Q y Y1), Y2 in L; generalize (mass_pos mu mv Q); intros M1.
    eapply Rle_trans; [|exact L]; apply Req_le; unfold mass; rewrite plus_INR; field; lra.
  - apply all_self.
  - intros [|j] b; unfold against; simpl side; [|destruct (Nat.ltb j mu)];
      [rewrite Rabs_pos_eq|rewrite Rabs_left|rewrite Rabs_left]; lra.
  - unfold n; lia.
Qed.

(** ** The exact constant, and how far the published one is from it *)

Lemma sharp_upper_all n d K : sharp_lip (INR (n - 1)) d <= K -> inf_lipschitz n d all_tokens K.
Proof.
  intros H; apply (lipschitz_le _ _ _ _ (sharp_lip (INR (n - 1)) d)); [pos|auto|].
  apply core_sharp_upper; auto using all_self, pos_INR, all_others.
Qed.

(** Clusters at the best distance: what is lost is due to mu <> mv. *)
Lemma sharp_lower mu mv d K
    (n := S (mu + mv)) (r := sharp_root (INR (mu + mv)) d) (Q := r + 2 / kappa d + 1) :
  (0 < d)%nat -> inf_lipschitz n d all_tokens K ->
  sharp_lip (INR (mu + mv)) d - kappa d * Q * ((INR mu - INR mv) * exp (- Q) / (1 + r))^2 <= K.
Proof.
  intros Hd L; assert (KP := kappa_ge2 d); assert (KI := inv_kappa_pos d).
  assert (R0 : 0 <= r) by (unfold r; pos).
  assert (E : INR (mu + mv) * exp (- Q) = r) by (apply sharp_root_spec; pos).
  apply (clusters_lower mu mv d Q K Hd ltac:(unfold Q; lra)) in L; rewrite E in L.
  eapply Rle_trans; [apply Req_le|exact L]; f_equal; unfold sharp_lip, Q; fold r; field; lra.
Qed.

(** For odd n the bound is exact: K is a Lipschitz constant of the core map of n tokens in d dimensions, in
    the infinity norm, if and only if K is at least 1 + kappa W((n-1) e^(-1-2/kappa)). *)
Theorem core_exact m d K (n := S (m + m)) : (0 < d)%nat ->
  inf_lipschitz n d all_tokens K <-> sharp_lip (INR (n - 1)) d <= K.
Proof.
  intros Hd; split; [|apply sharp_upper_all]; intros L; apply sharp_lower in L; [|auto]; unfold Rdiv in L.
  rewrite (Rminus_diag_eq (INR m)), !Rmult_0_l, pow_i, Rmult_0_r, Rminus_0_r in L by (auto; lia).
  replace (n - 1)%nat with (m + m)%nat by (unfold n; lia); exact L.
Qed.

(** For even n the bound is above the least Lipschitz constant by at most kappa Q (r/((n-1)(1+r)))^2, hence by
    at most kappa Q/(n-1)^2, where r = W((n-1) e^(-1-2/kappa)) and Q = r + 2/kappa + 1. *)
Theorem core_even_gap m d K
    (n := S (S (m + m))) (k := INR (n - 1)) (r := sharp_root k d) (Q := r + 2 / kappa d + 1) :
  (0 < d)%nat -> inf_lipschitz n d all_tokens K ->
  sharp_lip k d - kappa d * Q / k^2 <= sharp_lip k d - kappa d * Q * (r / (k * (1 + r)))^2 <= K.
Proof.
  intros Hd L; assert (KP := kappa_ge2 d); assert (KI := inv_kappa_pos d).
  assert (K0 : 0 < k) by (apply lt_0_INR; unfold n; lia); assert (R0 : 0 <= r) by (unfold r; pos); split.
  - apply Rplus_le_compat_l, Ropp_le_contravar.
    replace (_ / k^2) with (kappa d * Q * (/ k)^2) by (field; lra).
    apply Rmult_le_compat_l; [unfold Q; pos|apply pow_incr; split; [pos|]].
    apply Rle_div_l; [pos|]; replace (/ k * _) with (1 + r) by (field; lra); lra.
  - unfold n in L; rewrite plus_n_Sm in L; apply sharp_lower in L; [|auto].
    replace (INR (m + S m)) with k in L by (unfold k, n; f_equal; lia); fold r Q in L.
    replace (exp (- Q)) with (r / k) in L.
    + eapply Rle_trans; [|exact L]; apply Req_le; f_equal; f_equal; rewrite S_INR; field; lra.
    + apply Rmult_eq_reg_l with k; [|lra]; unfold Q, r; rewrite sharp_root_spec by lra; field; lra.
Qed.

(** The sharp constant is at most 1 + kappa W(k/e), which is at most the published 1 + 4 sqrt d W(k/e). *)
Theorem sharp_le_published k d : (1 <= d)%nat -> 0 <= k ->
  sharp_lip k d <= 1 + kappa d * phi_inv k <= 1 + 4 * sqrt (INR d) * phi_inv k.
Proof.
  intros Hd H; generalize (kappa_ge2 d) (sqrt_ge1 d Hd) (phi_inv_ge0 k); intros KP S C; split.
  - apply Rplus_le_compat_l, Rmult_le_compat_l, phi_inv_monotone; [lra|split; [pos|]].
    rewrite <- (Rmult_1_r k) at 2; apply Rmult_le_compat_l, exp_neg_le1, Rlt_le, inv_kappa_pos; auto.
  - apply Rplus_le_compat_l, Rmult_le_compat_r; [auto|]; unfold kappa; lra.
Qed.

(** Clusters at squared distance 1 + W(k/e). *)
Lemma two_sided_lower mu mv d K (n := S (mu + mv)) (c := phi_inv (INR (mu + mv))) :
  (0 < d)%nat -> kappa d * ((INR mu - INR mv) * exp (- (c + 1)))^2 < 2 ->
  inf_lipschitz n d all_tokens K -> kappa d * c - 1 < K.
Proof.
  intros Hd G L; assert (C0 : 0 <= c) by apply phi_inv_ge0.
  assert (EC : INR (mu + mv) * exp (- (c + 1)) = c) by (apply phi_inv_root; pos).
  apply (clusters_lower mu mv d (c + 1) K Hd ltac:(lra)) in L; rewrite EC in L.
  set (g := kappa d * _) in G; assert (0 < (2 - g) / (1 + c)) by pos.
  apply Rlt_le_trans with (kappa d * c - 1 + (2 - g) / (1 + c)); [lra|].
  eapply Rle_trans; [apply Req_le|exact L]; unfold g; field; lra.
Qed.

(** For odd n and with c = W((n-1)/e): 1 + kappa c is a Lipschitz constant of the core map in d dimensions,
    and every one exceeds kappa c - 1. *)
Theorem core_two_sided m d (n := S (m + m)) (c := phi_inv (INR (n - 1))) : (0 < d)%nat ->
  inf_lipschitz n d all_tokens (1 + kappa d * c) /\
  forall K, inf_lipschitz n d all_tokens K -> kappa d * c - 1 < K.
Proof.
  intros Hd; split; [apply sharp_upper_all, sharp_le_published; pos|].
  intros K L; unfold c, n; simpl (S _ - 1)%nat; rewrite Nat.sub_0_r; apply two_sided_lower; auto.
  rewrite Rminus_diag_eq by auto; simpl; lra.
Qed.

(** In one dimension, for every n, the least Lipschitz constant lies between 4 W((n-1)/e) - 1 and
    4 W((n-1)/e) + 1. *)
Theorem core_two_sided_dim1 n (c := phi_inv (INR (n - 1))) : (1 <= n)%nat ->
  inf_lipschitz n 1 all_tokens (4 * c + 1) /\ forall K, inf_lipschitz n 1 all_tokens K -> 4 * c - 1 < K.
Proof.
  intros Hn; assert (E : kappa 1 = 4) by (unfold kappa; simpl; rewrite sqrt_1; ring).
  rewrite <- E, Rplus_comm; split; [apply sharp_upper_all, sharp_le_published; pos|]; intros K L.
  assert (S : exists mu mv, n = S (mu + mv) /\ (mv = mu \/ mv = S mu)).
  { destruct (Nat.Even_or_Odd n) as [[m ->]|[m ->]]; [exists (m - 1)%nat, m|exists m, m]; lia. }
  destruct S as [mu [mv [-> D]]]; unfold c; simpl (S _ - 1)%nat; rewrite Nat.sub_0_r.
  apply two_sided_lower; auto; rewrite E; set (c' := phi_inv (INR (mu + mv))).
  assert (X : exp (- (c' + 1)) * exp (c' + 1) = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  generalize (phi_inv_ge0 (INR (mu + mv))) (exp_ineq1_le (c' + 1)) (exp_pos (- (c' + 1))); fold c'; intros.
  assert (exp (- (c' + 1)) <= / 2) by nra; destruct D as [-> | ->]; rewrite ?S_INR; nra.
Qed.

(** ** Temperature: scores -|z_i - z_j|^2 / tau *)

Definition core_at n d tau see := attention n see (fun z i j => l2_score d z i j / tau).

Lemma core_at_scale n d tau see z :
  0 < tau -> core_at n d tau see (scale (sqrt tau) z) = scale (sqrt tau) (core n d see z).
Proof.
  intros T; assert (W : weight see (fun z i j => l2_score d z i j / tau) (scale (sqrt tau) z)
                        = weight see (l2_score d) z).
  { extensionality i; extensionality j; unfold weight, l2_score; do 2 f_equal.
    rewrite sqdist_scale, pow2_sqrt by lra; field; lra. }
  unfold core_at, core, attention, P, total; rewrite W; token_ring.
Qed.

(** In every norm, the temperature does not change the Lipschitz constants of the core map. *)
Theorem core_temperature n d tau see N K : 0 < tau -> (forall k x, N (scale k x) = Rabs k * N x) ->
  lipschitz N N (core_at n d tau see) K <-> lipschitz N N (core n d see) K.
Proof.
  intros T HN; set (f := core_at n d tau see); set (g := core n d see); set (s := sqrt tau).
  assert (S : 0 < s) by (apply sqrt_lt_R0, T).
  assert (E : forall x y, N (tsub (f (scale s x)) (f (scale s y))) <= K * N (tsub (scale s x) (scale s y))
                          <-> N (tsub (g x) (g y)) <= K * N (tsub x y)).
  { intros x y; unfold f, s; rewrite !core_at_scale, !tsub_scale, !HN by auto; fold g s.
    rewrite Rabs_pos_eq by pos; split; nra. }
  assert (B : forall x, scale s (scale (/ s) x) = x)
    by (intros; rewrite scale_scale, Rinv_r by lra; token_ring).
  split; intros L x y _ _; [|rewrite <- (B x), <- (B y)]; apply E, L; exact I.
Qed.
