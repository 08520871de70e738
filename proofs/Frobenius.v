(** Lipschitz constants of L2 attention's core map in the 2-norm and in the sum and the largest of the
    tokens' norms, for every mask; of order n^(1/4) log n in the 2-norm without or with a causal mask. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Phi KeyLemma Tokens Core Kernel.
Open Scope R_scope.

Lemma mean_square_ge0 n p f :
  (forall j, (j < n)%nat -> 0 <= p j) -> 0 <= rsum n (fun j => p j * (f j)^2).
Proof. intros H; apply rsum_ge0; intros; apply Rmult_le_pos; [auto|apply pow2_ge_0]. Qed.

(** Cauchy-Schwarz for double sums, with bounds on the two factors. *)
Lemma cauchy_schwarz2 n p a b A B X Y :
  (forall i j, (i < n)%nat -> (j < n)%nat -> 0 <= p i j) -> 0 <= A -> 0 <= B -> 0 <= X -> 0 <= Y ->
  rsum n (fun i => rsum n (fun j => p i j * (a i j)^2)) <= A * X^2 ->
  rsum n (fun i => rsum n (fun j => p i j * (b i j)^2)) <= B * Y^2 ->
  rsum n (fun i => rsum n (fun j => p i j * (a i j * b i j))) <= sqrt (A * B) * X * Y.
Proof.
  intros Hp A0 B0 X0 Y0 HA HB.
  apply sq_le_le; [repeat apply Rmult_le_pos; auto; apply sqrt_pos|].
  assert (Pos : forall f : nat -> nat -> R, 0 <= rsum n (fun i => rsum n (fun j => p i j * (f i j)^2)))
    by (intros; apply rsum_ge0; intros; apply (mean_square_ge0 n); auto).
  eapply Rle_trans; [apply (discriminant _ _ _ (Pos a) (Pos b))|].
  - intros s t; generalize (Pos (fun i j => s * a i j - t * b i j)).
    rewrite (rsum2_ext n n _ (fun i j => s^2 * (p i j * (a i j)^2) + (-2 * s * t * (p i j * (a i j * b i j))
      + t^2 * (p i j * (b i j)^2)))) by (intros; ring).
    rewrite !rsum2_plus, !rsum2_scal; lra.
  - rewrite !Rpow_mult_distr, pow2_sqrt by (apply Rmult_le_pos; auto).
    replace (A * B * _ * _) with ((A * X^2) * (B * Y^2)) by ring; apply Rmult_le_compat; auto.
Qed.

(** Schur's test: row sums at most R and column sums at most C. *)
Lemma schur_test n p R C x y :
  (forall i j, (i < n)%nat -> (j < n)%nat -> 0 <= p i j) -> 0 <= R -> 0 <= C ->
  (forall i, (i < n)%nat -> rsum n (p i) <= R) -> (forall j, (j < n)%nat -> rsum n (fun i => p i j) <= C) ->
  rsum n (fun i => rsum n (fun j => p i j * (x i * y j))) <= sqrt (R * C) * vnorm n x * vnorm n y.
Proof.
  intros Hp R0 C0 HR HC.
  apply (cauchy_schwarz2 n p (fun i _ => x i) (fun _ j => y j)); auto using vnorm_ge0.
  - rewrite vnorm_sq, vdot_sq, <- rsum_scal; apply rsum_le; intros i Hi; rewrite rsum_scal_r.
    apply Rmult_le_compat_r; [apply pow2_ge_0|apply HR, Hi].
  - rewrite rsum_swap, vnorm_sq, vdot_sq, <- rsum_scal; apply rsum_le; intros j Hj; rewrite rsum_scal_r.
    apply Rmult_le_compat_r; [apply pow2_ge_0|apply HC, Hj].
Qed.

Section TwoNorm.
Variables (n d : nat) (see : mask).
Hypothesis self : sees_self n see.
Variable k : R.
Hypothesis k0 : 0 <= k.
Hypothesis others : others_seen n see k.
Local Notation c := (phi_inv k).
Local Notation A := (P n see (l2_score d)).
Local Notation m := (core n d see).
Local Notation J := (jvp n see (l2_score d) (l2_dscore d)).

(** z_i - z_j, and z_j - m_i for the mean m_i of what token i sees. *)
Definition diff (z : tokens) i j a := z i a - z j a.
Definition dev (z : tokens) i j a := z j a - m z i a.

Lemma A_ge0 z i j : (i < n)%nat -> 0 <= A z i j.
Proof. apply l2_P_ge0, self. Qed.

Lemma A_sum z i : (i < n)%nat -> rsum n (A z i) = 1.
Proof. apply P_sum, (self_row n see self). Qed.

(** The deviations from the mean average to zero. *)
Lemma centred z i w : (i < n)%nat -> rsum n (fun j => A z i j * vdot d w (dev z i j)) = 0.
Proof.
  intros Hi; rewrite (rsum_ext n _ (fun j => A z i j * vdot d (z j) w - vdot d (m z i) w * A z i j))
    by (intros; unfold dev; rewrite vdot_comm, vdot_minus; ring).
  rewrite rsum_minus, rsum_scal; change (fun j => A z i j) with (A z i); rewrite A_sum by auto.
  change (m z i) with (fun a => rsum n (fun j => A z i j * z j a)); rewrite vdot_rsum.
  rewrite (rsum_ext n (fun j => vdot d _ w) (fun j => A z i j * vdot d (z j) w))
    by (intros; apply vdot_scal); ring.
Qed.

(** Row i scatters about its mean with trace at most c, and z_i is within sqrt(c) of that mean. *)
Lemma scatter_le z i : (i < n)%nat ->
  rsum n (fun j => A z i j * (vnorm d (dev z i j))^2) <= c /\ vnorm d (dev z i i) <= sqrt c.
Proof.
  intros Hi; set (V := rsum n _).
  assert (S : V + (vnorm d (dev z i i))^2 <= c).
  { eapply Rle_trans; [|apply (row_moment_le n d see self k k0 others z i Hi)].
    assert (E : forall q : nat -> R, rsum n (fun j => A z i j * (vnorm d (fun a => z j a - q a))^2)
      = rsum d (fun a => rsum n (fun j => A z i j * (z j a - q a)^2)))
      by (intros; rewrite rsum_swap; apply rsum_ext; intros; rewrite vnorm_sq, vdot_sq, rsum_scal; auto).
    rewrite (rsum_ext n _ (fun j => A z i j * (vnorm d (fun a => z j a - z i a))^2))
      by (intros; rewrite sqdist_sym; reflexivity).
    unfold V, dev; rewrite !E, vnorm_sq, vdot_sq, <- rsum_plus; apply rsum_le; intros a _.
    apply Req_le, parallel_axis, A_sum, Hi. }
  assert (0 <= V) by (apply mean_square_ge0; intros; apply A_ge0, Hi).
  split; [|apply sqrt_le_1_alt; rewrite <- vnorm_sq]; generalize (pow2_ge_0 (vnorm d (dev z i i))); lra.
Qed.

Lemma covariance_le z i w : (i < n)%nat ->
  rsum n (fun j => A z i j * (vdot d w (dev z i j))^2) <= c * (vnorm d w)^2.
Proof.
  intros Hi; eapply Rle_trans; [|apply Rmult_le_compat_r; [apply pow2_ge_0|apply (scatter_le z i Hi)]].
  rewrite <- rsum_scal_r; apply rsum_le; intros j Hj; rewrite Rmult_assoc.
  apply Rmult_le_compat_l; [apply A_ge0, Hi|]; rewrite <- Rpow_mult_distr, <- pow2_abs.
  apply pow_incr; split; [apply Rabs_pos|]; rewrite Rmult_comm; apply vdot_le.
Qed.

(** A row of the derivative, tested with w. *)
Lemma row_le z v i w : (i < n)%nat ->
  vdot d w (J z v i) <= rsum n (fun j => A z i j * vdot d w (v j)) + 2 * c * (vnorm d w * vnorm d (v i))
    + 2 * rsum n (fun j => A z i j * (Rabs (vdot d w (dev z i j)) * (vnorm d (diff z i j) * vnorm d (v j)))).
Proof.
  intros Hi; pose (s j := vdot d w (dev z i j)); pose (p j := vdot d (v i) (dev z i j)).
  pose (g j := vdot d (diff z i j) (v j)).
  assert (E : vdot d w (J z v i) = rsum n (fun j => A z i j * vdot d w (v j))
     + 2 * rsum n (fun j => A z i j * (s j * p j)) + 2 * rsum n (fun j => A z i j * (s j * g j))).
  { rewrite vdot_jvp; fold (core n d see).
    rewrite (rsum_ext n _ (fun j => A z i j * vdot d w (v j) + 2 * (A z i j * (s j * p j))
      + 2 * (A z i j * (s j * g j)) - 2 * p i * (A z i j * s j))).
    - rewrite rsum_minus, !rsum_plus, !rsum_scal; unfold s at 3; rewrite centred by auto; ring.
    - intros j _; unfold l2_dscore; change (fun a => z i a - z j a) with (diff z i j).
      replace (vdot d w (z j) - vdot d w (m z i)) with (s j)
        by (unfold s, dev; rewrite !(vdot_comm d w); apply vdot_minus).
      replace (vdot d (diff z i j) _) with (p i - p j - g j)
        by (unfold p, g, vdot; rewrite <- !rsum_minus; apply rsum_ext; intros; unfold diff, dev; ring).
      ring. }
  rewrite E; repeat apply Rplus_le_compat; [lra|rewrite (Rmult_assoc 2)|]; apply Rmult_le_compat_l; try lra.
  - apply sq_le_le; [repeat apply Rmult_le_pos; apply vnorm_ge0 || apply phi_inv_ge0|].
    eapply Rle_trans; [apply cauchy_schwarz; intros; apply A_ge0, Hi|].
    replace ((c * _)^2) with ((c * (vnorm d w)^2) * (c * (vnorm d (v i))^2)) by ring.
    apply Rmult_le_compat; try apply covariance_le; auto; apply mean_square_ge0; intros; apply A_ge0, Hi.
  - apply rsum_le; intros j _; apply Rmult_le_compat_l; [apply A_ge0, Hi|].
    eapply Rle_trans; [apply Rle_abs|]; rewrite Rabs_mult.
    apply Rmult_le_compat_l; [apply Rabs_pos|apply vdot_le].
Qed.

Variables sigma M : R.
Hypothesis sigma0 : 0 <= sigma.
Hypothesis M0 : 0 <= M.
Hypothesis col_sum : col_sum_le n d see sigma.
Hypothesis col_moment : col_moment_le n d see M.

Lemma mix_le D z w v : rsum n (fun i => rsum n (fun j => A z i j * vdot D (w i) (v j)))
  <= sqrt sigma * norm_2 n D w * norm_2 n D v.
Proof.
  rewrite <- (Rmult_1_l sigma); eapply Rle_trans; [|apply (schur_test n (A z)); auto using A_ge0; try lra].
  - apply rsum2_le; intros; apply Rmult_le_compat_l; [apply A_ge0; auto|apply vdot_le_r].
  - intros; rewrite A_sum by auto; lra.
Qed.

(** The attention matrix itself: |P v|_2 <= sqrt(sigma) |v|_2. *)
Theorem P_norm_2 D z v :
  norm_2 n D (fun i a => rsum n (fun j => A z i j * v j a)) <= sqrt sigma * norm_2 n D v.
Proof.
  apply norm_2_dual; [apply Rmult_le_pos; [apply sqrt_pos|apply norm_2_ge0]|]; intros w.
  rewrite Rmult_assoc, (Rmult_comm (norm_2 n D v)), <- Rmult_assoc; eapply Rle_trans; [|apply (mix_le D z)].
  apply Req_le, rsum_ext; intros i _; rewrite vdot_comm, vdot_rsum; apply rsum_ext; intros.
  rewrite vdot_scal, vdot_comm; reflexivity.
Qed.

(** In the 2-norm g is (2c + sqrt(sigma) + 2 sqrt(c M))-Lipschitz. *)
Theorem core_lipschitz_2 :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (2 * c + sqrt sigma + 2 * sqrt (c * M)).
Proof.
  assert (c0 := phi_inv_ge0 k); assert (S0 := sqrt_pos sigma); assert (R0 := sqrt_pos (c * M)).
  apply (lipschitz_2 n d see _ (self_row n see self) _ (l2_score_derivative d) _ _ everywhere_convex); [lra|].
  intros z v w _; eapply Rle_trans; [apply rsum_le; intros; apply row_le; auto|].
  rewrite !rsum_plus, !rsum_scal.
  replace (_ * norm_2 n d v * _) with (sqrt sigma * norm_2 n d w * norm_2 n d v
    + 2 * c * (norm_2 n d w * norm_2 n d v) + 2 * (sqrt (c * M) * norm_2 n d w * norm_2 n d v)) by ring.
  repeat apply Rplus_le_compat; [|apply Rmult_le_compat_l; [lra|]..].
  - apply mix_le.
  - apply (vdot_le_r n (fun i => vnorm d (w i))).
  - apply (cauchy_schwarz2 n (A z)); auto using norm_2_ge0, A_ge0.
    + rewrite norm_2_sq, <- rsum_scal; apply rsum_le; intros i Hi.
      eapply Rle_trans; [|apply covariance_le, Hi]; apply Req_le, rsum_ext; intros.
      rewrite pow2_abs; reflexivity.
    + rewrite rsum_swap, norm_2_sq, <- rsum_scal; apply rsum_le; intros j Hj.
      eapply Rle_trans; [|apply Rmult_le_compat_r; [apply pow2_ge_0|apply (col_moment z j Hj)]].
      rewrite <- rsum_scal_r; apply Req_le, rsum_ext; intros; unfold sqdist, diff; ring.
Qed.

(** The norms of the blocks of the derivative. *)
Definition block z i j :=
  A z i j * (1 + 2 * (vnorm d (dev z i j) * vnorm d (diff z i j))) + delta i j * (2 * c).

Lemma block_ge0 z i j : (i < n)%nat -> 0 <= block z i j.
Proof.
  intros Hi; assert (c0 := phi_inv_ge0 k).
  apply Rplus_le_le_0_compat; apply Rmult_le_pos; [apply A_ge0, Hi|..].
  - generalize (Rmult_le_pos _ _ (vnorm_ge0 d (dev z i j)) (vnorm_ge0 d (diff z i j))); lra.
  - destruct (delta_cases i j) as [[_ ->]|[_ ->]]; lra.
  - lra.
Qed.

Lemma row_block_le z v i w : (i < n)%nat ->
  vdot d w (J z v i) <= rsum n (fun j => block z i j * (vnorm d w * vnorm d (v j))).
Proof.
  intros Hi; eapply Rle_trans; [apply row_le, Hi|].
  rewrite <- (rsum_delta n i (fun j => vnorm d w * vnorm d (v j)) Hi), <- !rsum_scal, <- !rsum_plus.
  apply rsum_le; intros j _; assert (A0 := A_ge0 z i j Hi); set (s := vdot d w (dev z i j)).
  assert (X : A z i j * vdot d w (v j) <= A z i j * (vnorm d w * vnorm d (v j)))
    by (apply Rmult_le_compat_l, vdot_le_r; auto).
  assert (Y : A z i j * (Rabs s * (vnorm d (diff z i j) * vnorm d (v j)))
    <= A z i j * (vnorm d w * vnorm d (dev z i j) * (vnorm d (diff z i j) * vnorm d (v j)))).
  { apply Rmult_le_compat_l, Rmult_le_compat_r, vdot_le; auto; apply Rmult_le_pos; apply vnorm_ge0. }
  unfold block; lra.
Qed.

Lemma block_row_sum z i : (i < n)%nat -> rsum n (block z i) <= 1 + 4 * c.
Proof.
  intros Hi; assert (c0 := phi_inv_ge0 k).
  assert (S : rsum n (fun j => A z i j * (vnorm d (dev z i j) * vnorm d (diff z i j))) <= c).
  { apply sq_le_le; [auto|]; eapply Rle_trans; [apply cauchy_schwarz; intros; apply A_ge0, Hi|].
    replace (c^2) with (c * c) by ring; apply Rmult_le_compat;
      try (apply mean_square_ge0; intros; apply A_ge0, Hi); [apply scatter_le, Hi|].
    apply (row_moment_le n d see self k k0 others z i Hi). }
  unfold block; rewrite rsum_plus, (rsum_delta n i (fun _ => 2 * c)) by auto.
  rewrite (rsum_ext n _ (fun j => A z i j + 2 * (A z i j * (vnorm d (dev z i j) * vnorm d (diff z i j)))))
    by (intros; ring).
  rewrite rsum_plus, rsum_scal; change (fun j => A z i j) with (A z i); rewrite A_sum by auto; lra.
Qed.

Lemma block_col_sum z j : (j < n)%nat ->
  rsum n (fun i => block z i j) <= 2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma).
Proof.
  intros Hj; assert (c0 := phi_inv_ge0 k).
  assert (S : rsum n (fun i => A z i j * (1 * vnorm d (diff z i j))) <= sqrt (sigma * M)).
  { apply sq_le_le; [apply sqrt_pos|]; eapply Rle_trans; [apply cauchy_schwarz; intros; apply A_ge0; auto|].
    rewrite pow2_sqrt by (apply Rmult_le_pos; auto); apply Rmult_le_compat;
      try (apply (mean_square_ge0 n); intros; apply A_ge0; auto); [|apply (col_moment z j Hj)].
    eapply Rle_trans; [|apply (col_sum z j Hj)]; apply Req_le, rsum_ext; intros; ring. }
  apply Rle_trans with (rsum n (fun i => A z i j + 2 * (A z i j * sqdist d z i j)
    + 2 * sqrt c * (A z i j * (1 * vnorm d (diff z i j))) + delta j i * (2 * c))).
  - apply rsum_le; intros i Hi; unfold block; replace (delta i j) with (delta j i)
      by (unfold delta; rewrite Nat.eqb_sym; reflexivity).
    assert (D : vnorm d (dev z i j) <= vnorm d (diff z i j) + sqrt c).
    { replace (dev z i j) with (fun a => -1 * diff z i j a + dev z i i a)
        by (extensionality a; unfold dev, diff; ring).
      eapply Rle_trans; [apply vnorm_plus|]; rewrite vnorm_scal, Rabs_m1, Rmult_1_l.
      apply Rplus_le_compat_l, scatter_le, Hi. }
    apply (Rmult_le_compat_r _ _ _ (vnorm_ge0 d (diff z i j))) in D.
    apply (Rmult_le_compat_l _ _ _ (A_ge0 z i j Hi)) in D.
    change (sqdist d z i j) with ((vnorm d (diff z i j))^2); lra.
  - rewrite !rsum_plus, !rsum_scal, (rsum_delta n j (fun _ => 2 * c)) by auto.
    replace (c * M * sigma) with (c * (sigma * M)) by ring.
    rewrite (sqrt_mult c) by (auto; apply Rmult_le_pos; auto).
    assert (X := col_sum z j Hj); assert (Y := col_moment z j Hj).
    apply (Rmult_le_compat_l (sqrt c)) in S; [|apply sqrt_pos]; lra.
Qed.

(** In the sum of the tokens' 2-norms g is (2c + sigma + 2M + 2 sqrt(c M sigma))-Lipschitz. *)
Theorem core_lipschitz_token_sum :
  lipschitz (token_sum n d) (token_sum n d) (core n d see) (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)).
Proof.
  assert (c0 := phi_inv_ge0 k); assert (R0 := sqrt_pos (c * M * sigma)).
  apply (lipschitz_token_sum n d see _ (self_row n see self) _ (l2_score_derivative d) _ _ everywhere_convex).
  intros z v w _ Hw; eapply Rle_trans; [apply rsum_le; intros; apply row_block_le; auto|].
  unfold token_sum; rewrite rsum_swap, <- rsum_scal; apply rsum_le; intros j Hj.
  eapply Rle_trans; [|apply Rmult_le_compat_r; [apply vnorm_ge0|apply (block_col_sum z j Hj)]].
  rewrite <- rsum_scal_r; apply rsum_le; intros i Hi.
  apply Rmult_le_compat_l; [apply block_ge0, Hi|]; specialize (Hw i Hi); generalize (vnorm_ge0 d (v j)); nra.
Qed.

(** With one feature that is the 1-norm. *)
Theorem core_lipschitz_1 : d = 1%nat ->
  lipschitz (norm_1 n d) (norm_1 n d) (core n d see) (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)).
Proof.
  intros E x y; assert (T : forall x, token_sum n d x = norm_1 n d x).
  { intros; rewrite E; apply rsum_ext; intros; unfold vnorm, vdot; simpl.
    rewrite !Rplus_0_l; apply sqrt_Rsqr_abs. }
  rewrite <- !T; apply core_lipschitz_token_sum.
Qed.

(** In the largest of the tokens' 2-norms g is (1 + 4c)-Lipschitz, whatever the mask. *)
Theorem core_lipschitz_token_max :
  lipschitz (token_max n d) (token_max n d) (core n d see) (1 + 4 * c).
Proof.
  assert (c0 := phi_inv_ge0 k); apply (lipschitz_token_max n d see _ (self_row n see self)
    _ (l2_score_derivative d) _ _ everywhere_convex); [lra|].
  intros z v i w _ Hi; eapply Rle_trans; [apply row_block_le, Hi|].
  rewrite Rmult_assoc; eapply Rle_trans; [|apply Rmult_le_compat_r; [|apply (block_row_sum z i Hi)]].
  - rewrite <- rsum_scal_r; apply rsum_le; intros j Hj.
    apply Rmult_le_compat_l; [apply block_ge0, Hi|]; rewrite Rmult_comm.
    apply Rmult_le_compat_r; [apply vnorm_ge0|apply vnorm_le_token_max, Hj].
  - apply Rmult_le_pos; [apply rmax_ge0|apply vnorm_ge0].
Qed.

(** In the 2-norm the geometric mean of the last two constants, for sum and largest, is one too. *)
Theorem core_lipschitz_2_schur : lipschitz (norm_2 n d) (norm_2 n d) (core n d see)
  (sqrt ((1 + 4 * c) * (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)))).
Proof.
  assert (c0 := phi_inv_ge0 k); assert (R0 := sqrt_pos (c * M * sigma)).
  apply (lipschitz_2 n d see _ (self_row n see self) _ (l2_score_derivative d) _ _ everywhere_convex);
    [apply sqrt_pos|].
  intros z v w _; eapply Rle_trans; [apply rsum_le; intros; apply row_block_le; auto|].
  rewrite Rmult_assoc, (Rmult_comm (norm_2 n d v)), <- Rmult_assoc.
  apply (schur_test n (block z) _ _ (fun i => vnorm d (w i)) (fun j => vnorm d (v j)));
    auto using block_ge0, block_row_sum, block_col_sum; lra.
Qed.

(** In the 2-norm g is sqrt(n) (1 + 4c)-Lipschitz, whatever the mask. *)
Theorem core_lipschitz_2_any_mask :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (sqrt (INR n) * (1 + 4 * c)).
Proof.
  assert (c0 := phi_inv_ge0 k); intros x y _ _; set (v := tsub x y).
  apply Rle_trans with (sqrt (INR n) * token_max n d (tsub (core n d see x) (core n d see y))).
  - apply sq_le_le; [apply Rmult_le_pos; [apply sqrt_pos|apply rmax_ge0]|].
    rewrite norm_2_sq, Rpow_mult_distr, pow2_sqrt, <- rsum_const by apply pos_INR.
    apply rsum_le; intros i Hi; apply pow_incr; split; [apply vnorm_ge0|apply vnorm_le_token_max, Hi].
  - rewrite Rmult_assoc; apply Rmult_le_compat_l; [apply sqrt_pos|].
    eapply Rle_trans; [apply (core_lipschitz_token_max x y I I)|]; apply Rmult_le_compat_l; [lra|].
    apply rmax_le; [apply norm_2_ge0|]; intros; apply vnorm_le_norm_2; auto.
Qed.
End TwoNorm.

(** ** Without a mask and with a causal one *)

Lemma fourth_root n : (0 < n)%nat -> sqrt (sqrt (INR n)) = Rpower (INR n) (1 / 4).
Proof.
  intros H; assert (0 < INR n) by (apply lt_0_INR; auto).
  rewrite <- (Rpower_sqrt (INR n)), <- Rpower_sqrt, Rpower_mult by (auto; apply exp_pos).
  f_equal; field.
Qed.

(** Without a mask the attention matrix has spectral norm at most n^(1/4), *)
Theorem P_spectral n d D z v :
  norm_2 n D (fun i a => rsum n (fun j => P n all_tokens (l2_score d) z i j * v j a))
  <= sqrt (sqrt (INR n)) * norm_2 n D v.
Proof.
  rewrite <- (Rmult_1_l (INR n)); apply P_norm_2; auto using all_self, sqrt_pos, col_sums_covers, covers_all.
Qed.

(** with a causal one at most (2n)^(1/4). *)
Theorem P_spectral_causal n d D z v :
  norm_2 n D (fun i a => rsum n (fun j => P n causal (l2_score d) z i j * v j a))
  <= sqrt (sqrt (2 * INR n)) * norm_2 n D v.
Proof. apply P_norm_2; auto using causal_self, sqrt_pos, col_sums_covers, covers_causal. Qed.

(** Masks with covers rho: no mask, rho = 1, and the causal one, rho = 2. *)
Section Covered.
Variables (n d : nat) (see : mask) (rho M : R).
Hypothesis self : sees_self n see.
Hypothesis cover : covers n see rho.
Local Notation c := (phi_inv (INR (n - 1))).
Local Notation N := (sqrt (rho * INR n)).

(** M is one of the three bounds on the columns of P_ij |z_i - z_j|^2. *)
Definition moment_bound := M = c * (N + 1) \/ M = INR (n - 1) * phi_inv 1 \/
  exists eps, 0 < eps < 1 /\ M = sqrt rho * Rpower (INR n) ((1 + eps) / 2) / (exp 1 * eps).

Lemma moments : moment_bound -> 0 <= M /\ col_moment_le n d see M.
Proof.
  intros [-> | [-> | [eps [He ->]]]]; split.
  - apply Rmult_le_pos; [apply phi_inv_ge0|generalize (sqrt_pos (rho * INR n)); lra].
  - apply col_moments_1; auto using pos_INR, any_seen_by, col_sums_covers.
  - apply Rmult_le_pos; [apply pos_INR|apply phi_inv_ge0].
  - apply col_moments_2; auto using any_seen_by.
  - apply Rmult_le_pos; [apply Rmult_le_pos; [apply sqrt_pos|apply Rlt_le, exp_pos]|].
    apply Rlt_le, Rinv_0_lt_compat, Rmult_lt_0_compat; [apply exp_pos|lra].
  - apply col_moments_3; auto.
Qed.

Hypothesis HM : moment_bound.

(** g is (2c + sqrt N + 2 sqrt(c M))-Lipschitz in the 2-norm, *)
Theorem covered_2 :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (2 * c + sqrt N + 2 * sqrt (c * M)).
Proof.
  destruct (moments HM); apply core_lipschitz_2; auto using any_others, col_sums_covers, pos_INR, sqrt_pos.
Qed.

(** and by Schur's test *)
Theorem covered_2_schur : lipschitz (norm_2 n d) (norm_2 n d) (core n d see)
  (sqrt ((1 + 4 * c) * (2 * c + N + 2 * M + 2 * sqrt (c * M * N)))).
Proof.
  destruct (moments HM); apply core_lipschitz_2_schur;
    auto using any_others, col_sums_covers, pos_INR, sqrt_pos.
Qed.

(** and in the sum of the tokens' 2-norms. *)
Theorem covered_token_sum : lipschitz (token_sum n d) (token_sum n d) (core n d see)
  (2 * c + N + 2 * M + 2 * sqrt (c * M * N)).
Proof.
  destruct (moments HM); apply core_lipschitz_token_sum;
    auto using any_others, col_sums_covers, pos_INR, sqrt_pos.
Qed.
End Covered.

(** Without a mask g is (2c + n^(1/4) + 2 sqrt(c M))-Lipschitz in the 2-norm, *)
Theorem core_two_norm n d M (c := phi_inv (INR (n - 1))) : moment_bound n 1 M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) (2 * c + sqrt (sqrt (INR n)) + 2 * sqrt (c * M)).
Proof. rewrite <- (Rmult_1_l (INR n)); apply covered_2; [apply all_self|apply covers_all]. Qed.

(** with a causal one (2c + (2n)^(1/4) + 2 sqrt(c M))-Lipschitz. *)
Theorem core_two_norm_causal n d M (c := phi_inv (INR (n - 1))) : moment_bound n 2 M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d causal) (2 * c + sqrt (sqrt (2 * INR n)) + 2 * sqrt (c * M)).
Proof. apply covered_2; [apply causal_self|apply covers_causal]. Qed.

(** A simpler constant of the same order, n^(1/4) log n. *)
Definition K2 n := sqrt (sqrt (INR n)) + sqrt (8 * (phi_inv (INR (n - 1)))^2 * (sqrt (INR n) + 2)).

(** Without a mask g is K2(n)-Lipschitz in the 2-norm, *)
Theorem core_lipschitz_K2 n d : lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) (K2 n).
Proof.
  set (c := phi_inv (INR (n - 1))); set (r := sqrt (INR n)).
  assert (c0 : 0 <= c) by apply phi_inv_ge0; assert (r0 : 0 <= r) by apply sqrt_pos.
  assert (HM : moment_bound n 1 (c * (r + 1))) by (left; unfold c, r; rewrite Rmult_1_l; reflexivity).
  eapply lipschitz_le; [apply norm_2_ge0| |apply (core_two_norm n d _ HM)].
  unfold K2; fold c r; replace (c * (c * (r + 1))) with (c^2 * (r + 1)) by ring.
  rewrite sqrt_mult, sqrt_pow2 by (lra || apply pow2_ge_0).
  assert (s0 := sqrt_pos (r + 1)); assert (s2 : (sqrt (r + 1))^2 = r + 1) by (apply pow2_sqrt; lra).
  assert (2 * c * (1 + sqrt (r + 1)) <= sqrt (8 * c^2 * (r + 2))); [|lra].
  rewrite <- (sqrt_pow2 (2 * c * (1 + sqrt (r + 1)))) by (repeat apply Rmult_le_pos; lra).
  apply sqrt_le_1_alt.
  replace ((2 * c * (1 + sqrt (r + 1)))^2) with (8 * c^2 * ((1 + sqrt (r + 1))^2 / 2)) by field.
  apply Rmult_le_compat_l; [generalize (pow2_ge_0 c); lra|]; nra.
Qed.

(** and K2(n) is never above the published sqrt(n) (4 W((n-1)/e) + 1). *)
Theorem K2_le_published n : (1 <= n)%nat -> K2 n <= sqrt (INR n) * (4 * phi_inv (INR (n - 1)) + 1).
Proof.
  intros Hn; unfold K2; set (c := phi_inv (INR (n - 1))); assert (C0 : 0 <= c) by apply phi_inv_ge0.
  assert (N1 : 1 <= INR n) by (change 1 with (INR 1); apply le_INR, Hn).
  assert (R1 : 1 <= sqrt (INR n)) by (rewrite <- sqrt_1; apply sqrt_le_1_alt, N1).
  assert (R2 : (sqrt (INR n))^2 = INR n) by (apply pow2_sqrt; lra).
  set (r := sqrt (INR n)) in *.
  assert (A : sqrt r <= r) by (rewrite <- (sqrt_pow2 r) at 2 by lra; apply sqrt_le_1_alt; nra).
  assert (B : sqrt (8 * c^2 * (r + 2)) <= 4 * c * r); [|lra].
  rewrite <- (sqrt_pow2 (4 * c * r)) by (repeat apply Rmult_le_pos; lra); apply sqrt_le_1_alt.
  destruct (Nat.eq_dec n 1) as [->|ne].
  - unfold c; simpl; rewrite phi_inv_0; lra.
  - assert (2 <= INR n) by (change 2 with (INR 2); apply le_INR; lia).
    replace ((4 * c * r)^2) with (8 * c^2 * (2 * r^2)) by ring.
    apply Rmult_le_compat_l; [generalize (pow2_ge_0 c); lra|nra].
Qed.
