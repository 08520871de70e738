(** A star of tokens: the order n^(1/4) of the 2-norm bound is right when d is about n. *)
From Lipsa Require Import Sums Tokens Core Kernel.

Section Star.
Variable M : nat.
Hypothesis M_pos : (0 < M)%nat.
Local Notation L := (M * M)%nat.
Local Notation n := (M + M * M)%nat.
Local Notation d := (S (M * M)).
Local Notation r := (sqrt (ln (INR M))).
Local Notation u := (/ INR M).

(** M centres at t e_L and M^2 leaves at r e_0, ..., r e_(L-1). *)
Definition height t i := if Nat.ltb i M then t else r.
Definition place i := if Nat.ltb i M then L else (i - M)%nat.
Definition star t : tokens := fun i a => height t i * delta (place i) a.

Lemma M_ge1 : 1 <= INR M.
Proof. apply (le_INR 1), M_pos. Qed.

Lemma centre t i : (i < M)%nat -> height t i = t /\ place i = L.
Proof. intros H; unfold height, place; apply Nat.ltb_lt in H; rewrite H; auto. Qed.

Lemma leaf t l : height t (M + l) = r /\ place (M + l) = l.
Proof. unfold height, place; destruct (Nat.ltb_spec (M + l) M); [lia|]; split; [reflexivity|lia]. Qed.

(** A sum over the tokens: M times what a centre has, and the leaves. *)
Lemma star_sum f a b : (forall i, (i < M)%nat -> f i = a) ->
  (forall l, (l < L)%nat -> f (M + l)%nat = b) -> rsum n f = INR M * (a + INR M * b).
Proof.
  intros Ha Hb; rewrite rsum_app, (rsum_ext M _ _ Ha), (rsum_ext L _ _ Hb), !rsum_const, mult_INR; ring.
Qed.

Lemma star_vdot t i (q : nat -> R) : (i < n)%nat -> vdot d (star t i) q = height t i * q (place i).
Proof.
  intros H; unfold star; rewrite vdot_scal; f_equal; apply (rsum_delta d (place i) q).
  unfold place; destruct (Nat.ltb_spec i M); lia.
Qed.

Lemma r_sq : exp (- r^2) = u.
Proof.
  assert (M1 := M_ge1); rewrite pow2_sqrt, exp_Ropp, exp_ln; [reflexivity|lra|].
  rewrite <- ln_1; destruct M1 as [H|<-]; [apply Rlt_le, ln_increasing|]; lra.
Qed.

(** A leaf sees itself with weight 1, each centre with e^-t^2 / M and other leaves with 1 / M^2. *)
Lemma leaf_weight t l i : (l < L)%nat -> (i < n)%nat ->
  weight all_tokens (l2_score d) (star t) (M + l) i
  = u * exp (- (height t i)^2) + delta (M + l) i * (1 - u * u).
Proof.
  intros Hl Hi; destruct (leaf t l) as [hl pl].
  unfold weight, vis, all_tokens, l2_score; rewrite sqdist_vdot, !star_vdot by lia.
  unfold star; rewrite !delta_same, hl, pl, Rmult_1_l, <- r_sq.
  destruct (delta_cases (M + l) i) as [[<- ->]|[ne ->]].
  - rewrite hl, pl, delta_same, r_sq; replace (- _) with 0 by ring; rewrite exp_0; ring.
  - rewrite Rmult_0_l, Rplus_0_r, delta_diff, <- exp_plus by (unfold place; destruct (Nat.ltb_spec i M); lia).
    f_equal; ring.
Qed.

Local Notation T t l := (total n all_tokens (l2_score d) (star t) (M + l)).

Lemma leaf_total t l : (l < L)%nat -> T t l = exp (- t^2) + 2 - u * u.
Proof.
  intros Hl; assert (M1 := M_ge1); unfold total.
  rewrite (rsum_ext n _ _ (fun i => leaf_weight t l i Hl)), rsum_plus.
  rewrite (rsum_delta n (M + l) (fun _ => _)), (star_sum _ (u * exp (- t^2)) (u * u)); [field; lra|..|lia].
  - intros i Hi; rewrite (proj1 (centre t i Hi)); reflexivity.
  - intros k _; rewrite (proj1 (leaf t k)), r_sq; reflexivity.
Qed.

(** The centres alone reach direction e_L. *)
Lemma leaf_core t l : (l < L)%nat -> core n d all_tokens (star t) (M + l)%nat L = exp (- t^2) / T t l * t.
Proof.
  intros Hl; assert (M1 := M_ge1); unfold core, attention.
  rewrite (star_sum _ (u * (exp (- t^2) / T t l * t)) 0).
  - rewrite Rmult_0_r, Rplus_0_r, <- Rmult_assoc, Rinv_r by lra; ring.
  - intros i Hi; unfold P; rewrite leaf_weight, delta_diff by lia; destruct (centre t i Hi) as [hi pi].
    unfold star at 2; rewrite hi, pi, delta_same; unfold Rdiv; ring.
  - intros k Hk; unfold star at 2; rewrite (proj2 (leaf t k)), delta_diff by lia; ring.
Qed.

Lemma star_step t : 0 <= t -> norm_2 n d (tsub (star t) (star 0)) = sqrt (INR M) * t.
Proof.
  intros t0; rewrite <- (sqrt_pow2 (norm_2 _ _ _)), norm_2_sq by apply norm_2_ge0.
  transitivity (sqrt (INR M * t^2)); [f_equal|rewrite sqrt_mult_alt, sqrt_pow2; auto with pos].
  rewrite (rsum_ext n _ (fun i => (height t i - height 0 i)^2)), (star_sum _ (t^2) 0); [ring|..].
  - intros i Hi; rewrite !(proj1 (centre _ i Hi)); ring.
  - intros l _; rewrite !(proj1 (leaf _ l)); ring.
  - intros i Hi; rewrite vnorm_sq; unfold tsub at 1; rewrite (vdot_minus d (star t i)), !star_vdot by auto.
    unfold tsub, star; rewrite delta_same; ring.
Qed.

(** M centres at one point and M^2 orthogonal leaves at squared distance ln M from it: every 2-norm Lipschitz
    constant of g on n = M + M^2 tokens in d = M^2 + 1 dimensions is at least sqrt(M)/3, *)
Theorem star_lower K :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) K -> sqrt (INR M) / 3 <= K.
Proof.
  intros H; assert (M1 := M_ge1); assert (u0 : 0 < u) by (apply Rinv_0_lt_compat; lra).
  assert (u1 : u <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  pose (t := u / 2); assert (t0 : 0 < t) by (unfold t; lra).
  specialize (H (star t) (star 0) I I); set (f := tsub (core _ _ _ _) _) in H; rewrite star_step in H by lra.
  assert (Y : INR M * (t / 3) <= norm_2 n d f).
  { apply sq_le_le; [apply norm_2_ge0|]; rewrite norm_2_sq.
    rewrite rsum_app; apply Rle_trans with (INR L * (t / 3)^2); [rewrite mult_INR; lra|].
    rewrite <- rsum_const, <- (Rplus_0_l (rsum L _)); apply Rplus_le_compat; [auto with pos|].
    apply rsum_le; intros l Hl; apply pow_incr; split; [lra|].
    eapply Rle_trans; [|apply (entry_le_vnorm d (f (M + l)%nat) L); lia].
    eapply Rle_trans; [|apply Rle_abs]; unfold f, tsub.
    rewrite !leaf_core, Rmult_0_r, Rminus_0_r, leaf_total by auto; unfold Rdiv at 1; rewrite Rmult_comm.
    assert (G := exp_ineq1_le (- t^2)); assert (t2 : t^2 = u * u / 4) by (unfold t; field; lra).
    apply Rmult_le_compat_r; [lra|]; apply Rle_div_r; nra. }
  assert (s0 : 0 < sqrt (INR M)) by (apply sqrt_lt_R0; lra); rewrite <- (sqrt_sqrt (INR M)) in Y by lra.
  apply Rmult_le_reg_r with (sqrt (INR M) * t); [apply Rmult_lt_0_compat; lra|lra].
Qed.

(** which is more than n^(1/4)/4. *)
Theorem star_lower_order K :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) K -> sqrt (sqrt (INR n)) / 4 <= K.
Proof.
  intros H; apply Rle_trans with (sqrt (INR M) / 3); [|apply star_lower, H]; assert (M1 := M_ge1).
  enough (sqrt (sqrt (INR n)) <= 4 / 3 * sqrt (INR M)) by lra.
  apply sq_le_le; [auto with pos|]; rewrite Rpow_mult_distr, !pow2_sqrt by auto with pos.
  apply sq_le_le; [lra|]; rewrite pow2_sqrt, plus_INR, mult_INR by apply pos_INR; nra.
Qed.
End Star.
