(** A star of tokens: the order n^(1/4) of the 2-norm bound is right when d is about n. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Tokens Core Kernel.
Open Scope R_scope.

Section Star.
Variable M : nat.
Hypothesis M_pos : (0 < M)%nat.
Local Notation L := (M * M)%nat.
Local Notation n := (M + M * M)%nat.
Local Notation d := (S (M * M)).
Local Notation r := (sqrt (ln (INR M))).

(** M centres at t e_L and M^2 leaves at r e_0, ..., r e_(L-1). *)
Definition height t i := if Nat.ltb i M then t else r.
Definition place i := if Nat.ltb i M then L else (i - M)%nat.
Definition star t : tokens := fun i a => height t i * delta (place i) a.

Lemma M_ge1 : 1 <= INR M.
Proof. apply (le_INR 1), M_pos. Qed.

Lemma centre t i : (i < M)%nat -> height t i = t /\ place i = L.
Proof. intros H; unfold height, place; apply Nat.ltb_lt in H; rewrite H; auto. Qed.

Lemma leaf t l : height t (M + l) = r /\ place (M + l) = l.
Proof.
  unfold height, place; replace (Nat.ltb (M + l) M) with false by (symmetry; apply Nat.ltb_ge; lia).
  split; [reflexivity|lia].
Qed.

Lemma place_le i : (i < n)%nat -> (place i < d)%nat.
Proof. intros H; unfold place; destruct (Nat.ltb_spec i M); lia. Qed.

Lemma star_vdot t i (q : nat -> R) : (i < n)%nat -> vdot d (star t i) q = height t i * q (place i).
Proof.
  intros H; unfold star; rewrite vdot_scal; f_equal; apply (rsum_delta d (place i) q), place_le, H.
Qed.

Lemma star_sqdist t i j : (i < n)%nat -> (j < n)%nat ->
  sqdist d (star t) i j
  = (height t i)^2 + (height t j)^2 - 2 * height t i * height t j * delta (place j) (place i).
Proof.
  intros Hi Hj; rewrite sqdist_vdot, !star_vdot by auto; unfold star; rewrite !delta_same; ring.
Qed.

Lemma r_sq : exp (- r^2) = / INR M.
Proof.
  assert (M1 := M_ge1); rewrite pow2_sqrt, exp_Ropp, exp_ln; [reflexivity|lra|].
  rewrite <- ln_1; destruct M1 as [H|<-]; [apply Rlt_le, ln_increasing|]; lra.
Qed.

Local Notation T t l := (total n all_tokens (l2_score d) (star t) (M + l)).

Lemma centre_weight t l k : (l < L)%nat -> (k < M)%nat ->
  weight all_tokens (l2_score d) (star t) (M + l) k = exp (- t^2) * / INR M.
Proof.
  intros Hl Hk; destruct (leaf t l) as [hl pl], (centre t k Hk) as [hk pk]; unfold weight, l2_score.
  rewrite star_sqdist, hl, hk, pl, pk, delta_diff by lia.
  replace (- _) with (- t^2 + - r^2) by ring; rewrite exp_plus, r_sq; unfold vis, all_tokens; ring.
Qed.

(** A leaf sees the centres with weight e^-t^2 / M, itself with 1, other leaves with 1 / M^2. *)
Lemma leaf_total t l : (l < L)%nat -> T t l = exp (- t^2) + 2 - / INR M * / INR M.
Proof.
  intros Hl; assert (M1 := M_ge1); destruct (leaf t l) as [hl pl].
  unfold total; rewrite rsum_app.
  rewrite (rsum_ext M _ (fun _ => exp (- t^2) * / INR M)) by (intros; apply centre_weight; auto).
  rewrite (rsum_ext L _ (fun k => delta l k * (1 - / INR M * / INR M) + / INR M * / INR M)).
  - rewrite rsum_plus, (rsum_delta L l (fun _ => _)), !rsum_const by auto.
    rewrite mult_INR; field; lra.
  - intros k Hk; destruct (leaf t k) as [hk pk]; unfold weight, l2_score.
    rewrite star_sqdist, hl, hk, pl, pk by lia.
    destruct (delta_cases l k) as [[<- E]|[ne E]]; rewrite E, ?delta_same, ?(delta_diff k l) by auto.
    + replace (- _) with 0 by ring; rewrite exp_0; unfold vis, all_tokens; ring.
    + replace (- _) with (- r^2 + - r^2) by ring; rewrite exp_plus, r_sq; unfold vis, all_tokens; ring.
Qed.

(** So it attends to the centres with e^-t^2 / total, and they alone reach direction e_L. *)
Lemma leaf_core t l : (l < L)%nat -> core n d all_tokens (star t) (M + l)%nat L = exp (- t^2) / T t l * t.
Proof.
  intros Hl; assert (M1 := M_ge1); unfold core, attention; rewrite rsum_app.
  rewrite (rsum_ext M _ (fun _ => / INR M * (exp (- t^2) / T t l * t))), (rsum_ext L _ (fun _ => 0)).
  - rewrite rsum_const, rsum_0, Rplus_0_r, <- Rmult_assoc, Rinv_r, Rmult_1_l by lra; reflexivity.
  - intros k Hk; unfold star at 2; rewrite (proj2 (leaf t k)), delta_diff by lia; ring.
  - intros k Hk; unfold P; rewrite centre_weight by auto; destruct (centre t k Hk) as [hk pk].
    unfold star at 2; rewrite hk, pk, delta_same; unfold Rdiv; ring.
Qed.

Lemma star_step t i : (i < n)%nat ->
  (vnorm d (tsub (star t) (star 0) i))^2 = (height t i - height 0 i)^2.
Proof.
  intros Hi; replace (tsub (star t) (star 0) i) with (fun a => (height t i - height 0 i) * delta (place i) a)
    by (extensionality a; unfold tsub, star; ring).
  rewrite vnorm_sq, vdot_scal; unfold vdot; rewrite rsum_delta, delta_same by (apply place_le, Hi); ring.
Qed.

(** M centres at one point and M^2 orthogonal leaves at squared distance ln M from it: every 2-norm Lipschitz
    constant of g on n = M + M^2 tokens in d = M^2 + 1 dimensions is at least sqrt(M)/3, *)
Theorem star_lower K :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) K -> sqrt (INR M) / 3 <= K.
Proof.
  intros H; assert (M1 := M_ge1); set (t := / (2 * INR M)).
  assert (inv0 : 0 < / INR M) by (apply Rinv_0_lt_compat; lra).
  assert (t0 : 0 < t) by (apply Rinv_0_lt_compat; lra).
  assert (t2 : t^2 = / INR M * / INR M / 4) by (unfold t; field; lra).
  specialize (H (star t) (star 0) I I); set (f := tsub (core _ _ _ _) _) in H.
  assert (X : norm_2 n d (tsub (star t) (star 0)) = sqrt (INR M) * t).
  { rewrite <- (sqrt_pow2 (norm_2 _ _ _)), norm_2_sq, (rsum_ext n _ _ (star_step t)) by apply norm_2_ge0.
    rewrite rsum_app, (rsum_ext M _ (fun _ => t^2)), (rsum_ext L _ (fun _ => 0)), rsum_0, rsum_const.
    - rewrite Rplus_0_r, sqrt_mult, sqrt_pow2 by (lra || apply pow2_ge_0); reflexivity.
    - intros l _; rewrite !(proj1 (leaf _ l)); ring.
    - intros i Hi; rewrite !(proj1 (centre _ i Hi)); ring. }
  assert (Y : INR M * (t / 3) <= norm_2 n d f).
  { apply sq_le_le; [apply norm_2_ge0|]; rewrite norm_2_sq, rsum_app.
    assert (0 <= rsum M (fun i => (vnorm d (f i))^2)) by (apply rsum_ge0; intros; apply pow2_ge_0).
    replace ((INR M * (t / 3))^2) with (INR L * (t / 3)^2) by (rewrite mult_INR; ring).
    assert (INR L * (t / 3)^2 <= rsum L (fun l => (vnorm d (f (M + l)%nat))^2)); [|lra].
    rewrite <- rsum_const; apply rsum_le; intros l Hl; apply pow_incr; split; [lra|].
    eapply Rle_trans; [|apply (entry_le_vnorm d (f (M + l)%nat) L); lia].
    eapply Rle_trans; [|apply Rle_abs]; unfold f, tsub; rewrite !leaf_core, Rmult_0_r, Rminus_0_r by auto.
    unfold Rdiv; rewrite (Rmult_comm t); apply Rmult_le_compat_r; [lra|].
    assert (G := exp_ineq1_le (- t^2)); rewrite leaf_total by auto.
    assert (/ INR M <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    apply Rle_div_r; nra. }
  assert (s0 : 0 < sqrt (INR M)) by (apply sqrt_lt_R0; lra).
  assert (s2 : sqrt (INR M) * sqrt (INR M) = INR M) by (apply sqrt_sqrt; lra).
  apply Rmult_le_reg_r with (sqrt (INR M) * t); [apply Rmult_lt_0_compat; lra|].
  rewrite <- s2 in Y; rewrite X in H; lra.
Qed.

(** which is more than n^(1/4)/4. *)
Theorem star_lower_order K :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) K -> sqrt (sqrt (INR n)) / 4 <= K.
Proof.
  intros H; apply Rle_trans with (sqrt (INR M) / 3); [|apply star_lower, H]; assert (M1 := M_ge1).
  assert (A : sqrt (INR n) <= (4 / 3)^2 * INR M).
  { apply sq_le_le; [lra|]; rewrite pow2_sqrt, plus_INR, mult_INR by apply pos_INR; nra. }
  assert (B : sqrt (sqrt (INR n)) <= 4 / 3 * sqrt (INR M)); [|lra].
  apply sq_le_le; [generalize (sqrt_pos (INR M)); lra|].
  rewrite Rpow_mult_distr, !pow2_sqrt by (lra || apply sqrt_pos); exact A.
Qed.
End Star.
