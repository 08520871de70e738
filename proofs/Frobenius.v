(** Lipschitz constants of L2 attention's core map in the 2-norm and in the sum and the largest of the
    tokens' norms, for every mask; of order n^(1/4) log n in the 2-norm without or with a causal mask. *)
From Lipsa Require Import Sums Phi Tokens Core Kernel.

(** Schur's test: row sums at most R and column sums at most C. *)
Lemma schur_test n p R C x y :
  (forall i j, (i < n)%nat -> (j < n)%nat -> 0 <= p i j) ->
  (forall i, (i < n)%nat -> rsum n (p i) <= R) -> (forall j, (j < n)%nat -> rsum n (fun i => p i j) <= C) ->
  rsum n (fun i => rsum n (fun j => p i j * (x i * y j))) <= sqrt (R * C) * vnorm n x * vnorm n y.
Proof.
  intros Hp HR HC; apply (cauchy_schwarz2 n p (fun i _ => x i) (fun _ j => y j)); auto with pos;
    [|rewrite rsum_swap]; rewrite vnorm_sq, vdot_sq, <- rsum_scal; apply rsum_le; intros;
    rewrite rsum_scal_r; apply Rmult_le_compat_r; auto with pos.
Qed.

Section TwoNorm.
Variables (n d : nat) (see : mask) (k : R).
Hypotheses (self : sees_self n see) (k0 : 0 <= k) (others : others_seen n see k).
Local Notation c := (phi_inv k).
Local Notation A := (P n see (l2_score d)).
Local Notation J := (jvp n see (l2_score d) (l2_dscore d)).
Local Notation dev := (dev n see (l2_score d)).
Let row : nonempty_rows n see := self_row n see self.

(** z_i - z_j. *)
Definition diff (z : tokens) i j a := z i a - z j a.

Lemma A_sum z i : (i < n)%nat -> rsum n (fun j => A z i j) = 1.
Proof. apply (P_sum n see (l2_score d) row z i). Qed.

(** Row i scatters about its mean with trace at most c, and z_i is within sqrt(c) of that mean. *)
Lemma scatter_le z i : (i < n)%nat ->
  rsum n (fun j => A z i j * (vnorm d (dev z i j))^2) <= c /\ vnorm d (dev z i i) <= sqrt c.
Proof.
  intros Hi; assert (S := scatter n d see (l2_score d) row z i (z i) Hi).
  assert (B := row_moment_le n d see self k k0 others z i Hi).
  rewrite (rsum_ext n _ (fun j => A z i j * sqdist d z j i)) in B by (intros; rewrite sqdist_sym; auto).
  unfold sqdist in B; rewrite <- S in B; change (fun a => z i a - _) with (dev z i i) in B.
  assert (V0 : 0 <= rsum n (fun j => A z i j * (vnorm d (dev z i j))^2)) by auto with pos.
  generalize (pow2_ge_0 (vnorm d (dev z i i))); intros; split; [lra|].
  apply sq_le_le; [apply sqrt_pos|rewrite pow2_sqrt; auto with pos].
Qed.

Lemma cov_le z i w : (i < n)%nat ->
  rsum n (fun j => A z i j * (vdot d w (dev z i j))^2) <= c * (vnorm d w)^2.
Proof. intros Hi; apply covariance_le, scatter_le; auto. Qed.

(** A row of the derivative, tested with w. *)
Lemma row_le z v i w : (i < n)%nat ->
  vdot d w (J z v i) <= rsum n (fun j => A z i j * vdot d w (v j)) + 2 * c * (vnorm d w * vnorm d (v i))
    + 2 * rsum n (fun j => A z i j * (Rabs (vdot d w (dev z i j)) * (vnorm d (diff z i j) * vnorm d (v j)))).
Proof.
  intros Hi; pose (s j := vdot d w (dev z i j)); pose (p j := vdot d (v i) (dev z i j)).
  assert (SP : rsum n (fun j => A z i j * (s j * p j)) <= c * (vnorm d w * vnorm d (v i)))
    by (eapply mean_product_le; [..|apply cov_le|apply cov_le|]; auto with pos; lra).
  apply Rle_trans with (rsum n (fun j => A z i j * vdot d w (v j))
    + 2 * rsum n (fun j => A z i j * (s j * p j)) - 2 * p i * rsum n (fun j => A z i j * s j)
    + 2 * rsum n (fun j => A z i j * (Rabs (s j) * (vnorm d (diff z i j) * vnorm d (v j)))));
    [|unfold s, p in *; rewrite (centred n d see (l2_score d) row) by auto; lra].
  rewrite vdot_jvp, <- !rsum_scal, <- rsum_plus, <- rsum_minus, <- rsum_plus; apply rsum_le; intros j _.
  rewrite <- vdot_dev; fold (s j); unfold l2_dscore.
  replace (vdot d (fun a => z i a - z j a) _) with (p i - p j - vdot d (diff z i j) (v j))
    by (unfold p, vdot; rewrite <- !rsum_minus; apply rsum_ext; intros; unfold diff, dev; ring).
  assert (G : Rabs (s j * vdot d (diff z i j) (v j)) <= Rabs (s j) * (vnorm d (diff z i j) * vnorm d (v j)))
    by (rewrite Rabs_mult; apply Rmult_le_compat_l, vdot_le; apply Rabs_pos).
  apply (Rle_trans _ _ _ (Rle_abs _)), (Rmult_le_compat_l (A z i j)) in G; auto with pos; lra.
Qed.

Variables sigma M : R.
Hypotheses (col_sum : col_sum_le n d see sigma) (col_moment : col_moment_le n d see M).

Lemma mix_le D z w v : rsum n (fun i => rsum n (fun j => A z i j * vdot D (w i) (v j)))
  <= sqrt sigma * norm_2 n D w * norm_2 n D v.
Proof.
  rewrite <- (Rmult_1_l sigma); eapply Rle_trans; [|apply (schur_test n (A z)); auto with pos].
  - apply rsum2_le; intros; apply Rmult_le_compat_l, vdot_le_r; auto with pos.
  - intros; apply Req_le, A_sum; auto.
Qed.

(** The attention matrix itself: |P v|_2 <= sqrt(sigma) |v|_2. *)
Theorem P_norm_2 D z v :
  norm_2 n D (fun i a => rsum n (fun j => A z i j * v j a)) <= sqrt sigma * norm_2 n D v.
Proof.
  apply norm_2_dual; [auto with pos|]; intros w; generalize (mix_le D z w v); unfold dot.
  rewrite (rsum_ext n (fun i => vdot D (w i) _) _ (fun i _ => vdot_mean n D (A z i) v (w i))); lra.
Qed.

(** In the 2-norm g is (2c + sqrt(sigma) + 2 sqrt(c M))-Lipschitz. *)
Theorem core_lipschitz_2 :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (2 * c + sqrt sigma + 2 * sqrt (c * M)).
Proof.
  apply (lipschitz_2 n d see _ row _ (l2_score_derivative d) _ _ everywhere_convex); [auto with pos|].
  intros z v w _; eapply Rle_trans; [apply rsum_le; intros; apply row_le; auto|].
  rewrite !rsum_plus, !rsum_scal; generalize (mix_le d z w v).
  assert (X := vdot_le_r n (fun i => vnorm d (w i)) (fun j => vnorm d (v j))).
  apply (Rmult_le_compat_l (2 * c)) in X; [|auto with pos].
  enough (Y : rsum n (fun i => rsum n (fun j => A z i j * (Rabs (vdot d (w i) (dev z i j)) *
    (vnorm d (diff z i j) * vnorm d (v j))))) <= sqrt (c * M) * norm_2 n d w * norm_2 n d v)
    by (unfold norm_2, vdot in *; lra).
  apply (cauchy_schwarz2 n (A z)); auto with pos.
  - rewrite norm_2_sq, <- rsum_scal; apply rsum_le; intros i Hi.
    eapply Rle_trans; [|apply cov_le, Hi]; apply Req_le, rsum_ext; intros; rewrite pow2_abs; auto.
  - rewrite rsum_swap, norm_2_sq, <- rsum_scal; apply rsum_le; intros j Hj.
    eapply Rle_trans; [|apply Rmult_le_compat_r; [apply pow2_ge_0|apply (col_moment z j Hj)]].
    rewrite <- rsum_scal_r; apply Req_le, rsum_ext; intros; unfold sqdist, diff; ring.
Qed.

(** The norms of the blocks of the derivative. *)
Definition block z i j :=
  A z i j * (1 + 2 * (vnorm d (dev z i j) * vnorm d (diff z i j))) + delta i j * (2 * c).

Lemma block_ge0 z i j : (i < n)%nat -> 0 <= block z i j.
Proof.
  intros Hi; apply Rplus_le_le_0_compat; [auto 6 with pos|].
  destruct (delta_cases i j) as [[_ ->]|[_ ->]]; auto with pos.
Qed.

Lemma row_block_le z v i w : (i < n)%nat ->
  vdot d w (J z v i) <= rsum n (fun j => block z i j * (vnorm d w * vnorm d (v j))).
Proof.
  intros Hi; eapply Rle_trans; [apply row_le, Hi|].
  rewrite <- (rsum_delta n i (fun j => vnorm d w * vnorm d (v j)) Hi), <- !rsum_scal, <- !rsum_plus.
  apply rsum_le; intros j _; set (V := vnorm d (diff z i j) * vnorm d (v j)); unfold block.
  assert (X := Rmult_le_compat_r V _ _ ltac:(unfold V; auto with pos) (vdot_le d w (dev z i j))).
  assert (Y := vdot_le_r d w (v j)); assert (A0 := l2_P_ge0 n d see self z i j Hi).
  apply (Rmult_le_compat_l (A z i j)) in X, Y; auto; unfold V in *; lra.
Qed.

Lemma block_row_sum z i : (i < n)%nat -> rsum n (block z i) <= 1 + 4 * c.
Proof.
  intros Hi; unfold block; rewrite rsum_plus, (rsum_delta n i (fun _ => 2 * c)) by auto.
  rewrite (rsum_ext n _ (fun j => A z i j + 2 * (A z i j * (vnorm d (dev z i j) * vnorm d (diff z i j)))))
    by (intros; ring).
  rewrite rsum_plus, rsum_scal, A_sum by auto.
  enough (rsum n (fun j => A z i j * (vnorm d (dev z i j) * vnorm d (diff z i j))) <= c) by lra.
  eapply mean_product_le; [..|apply scatter_le, Hi|apply (row_moment_le n d see self k k0 others z i Hi)|];
    auto with pos; lra.
Qed.

Lemma block_col_sum z j : (j < n)%nat ->
  rsum n (fun i => block z i j) <= 2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma).
Proof.
  intros Hj; replace (c * M * sigma) with (c * (sigma * M)) by ring; rewrite sqrt_mult_alt by auto with pos.
  assert (S : rsum n (fun i => A z i j * (1 * vnorm d (diff z i j))) <= sqrt (sigma * M)).
  { apply (mean_product_le n _ _ _ sigma M); auto using le_sqrt_sq with pos; [|apply (col_moment z j Hj)].
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
    apply (Rmult_le_compat_l (A z i j)) in D; [|auto with pos].
    change (sqdist d z i j) with ((vnorm d (diff z i j))^2); lra.
  - rewrite !rsum_plus, !rsum_scal, (rsum_delta n j (fun _ => 2 * c)) by auto.
    apply (Rmult_le_compat_l (sqrt c)) in S; [|apply sqrt_pos].
    generalize (col_sum z j Hj) (col_moment z j Hj); lra.
Qed.

(** In the sum of the tokens' 2-norms g is (2c + sigma + 2M + 2 sqrt(c M sigma))-Lipschitz. *)
Theorem core_lipschitz_token_sum :
  lipschitz (token_sum n d) (token_sum n d) (core n d see) (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)).
Proof.
  apply (lipschitz_token_sum n d see _ row _ (l2_score_derivative d) _ _ everywhere_convex).
  intros z v w _ Hw; eapply Rle_trans; [apply rsum_le; intros; apply row_block_le; auto|].
  unfold token_sum; rewrite rsum_swap, <- rsum_scal; apply rsum_le; intros j Hj.
  eapply Rle_trans; [|apply Rmult_le_compat_r; [apply vnorm_ge0|apply (block_col_sum z j Hj)]].
  rewrite <- rsum_scal_r; apply rsum_le; intros i Hi.
  apply Rmult_le_compat_l; [apply block_ge0, Hi|generalize (Hw i Hi) (vnorm_ge0 d (v j)); nra].
Qed.

(** With one feature that is the 1-norm. *)
Theorem core_lipschitz_1 : d = 1%nat ->
  lipschitz (norm_1 n d) (norm_1 n d) (core n d see) (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)).
Proof.
  intros E; replace (norm_1 n d) with (token_sum n d); [apply core_lipschitz_token_sum|].
  extensionality x; rewrite E; apply rsum_ext; intros; unfold vnorm, vdot; simpl.
  rewrite !Rplus_0_l; apply sqrt_Rsqr_abs.
Qed.

(** In the largest of the tokens' 2-norms g is (1 + 4c)-Lipschitz, whatever the mask. *)
Theorem core_lipschitz_token_max :
  lipschitz (token_max n d) (token_max n d) (core n d see) (1 + 4 * c).
Proof.
  apply (lipschitz_token_max n d see _ row _ (l2_score_derivative d) _ _ everywhere_convex); [auto with pos|].
  intros z v i w _ Hi; eapply Rle_trans; [apply row_block_le, Hi|].
  rewrite Rmult_assoc; eapply Rle_trans; [|apply Rmult_le_compat_r; [|apply (block_row_sum z i Hi)]].
  - rewrite <- rsum_scal_r; apply rsum_le; intros j Hj; rewrite (Rmult_comm (token_max _ _ _)).
    apply Rmult_le_compat_l, Rmult_le_compat_l, vnorm_le_token_max; auto using block_ge0 with pos.
  - unfold token_max; auto with pos.
Qed.

(** In the 2-norm the geometric mean of the last two constants, for sum and largest, is one too. *)
Theorem core_lipschitz_2_schur : lipschitz (norm_2 n d) (norm_2 n d) (core n d see)
  (sqrt ((1 + 4 * c) * (2 * c + sigma + 2 * M + 2 * sqrt (c * M * sigma)))).
Proof.
  apply (lipschitz_2 n d see _ row _ (l2_score_derivative d) _ _ everywhere_convex); [apply sqrt_pos|].
  intros z v w _; eapply Rle_trans; [apply rsum_le; intros; apply row_block_le; auto|].
  rewrite Rmult_assoc, (Rmult_comm (norm_2 n d v)), <- Rmult_assoc.
  apply (schur_test n (block z) _ _ (fun i => vnorm d (w i)) (fun j => vnorm d (v j)));
    auto using block_ge0, block_row_sum, block_col_sum with pos.
Qed.

(** In the 2-norm g is sqrt(n) (1 + 4c)-Lipschitz, whatever the mask. *)
Theorem core_lipschitz_2_any_mask :
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (sqrt (INR n) * (1 + 4 * c)).
Proof.
  intros x y _ _; assert (H := core_lipschitz_token_max x y I I); set (v := tsub x y) in *.
  assert (T : token_max n d v <= norm_2 n d v) by (apply rmax_le; auto using vnorm_le_norm_2 with pos).
  apply (Rmult_le_compat_l (1 + 4 * c)) in T; [|auto with pos]; apply (Rle_trans _ _ _ H) in T.
  apply (Rmult_le_compat_l _ _ _ (sqrt_pos (INR n))) in T; rewrite Rmult_assoc; eapply Rle_trans; [|exact T].
  apply sq_le_le; [unfold token_max; auto with pos|].
  rewrite norm_2_sq, Rpow_mult_distr, pow2_sqrt, <- rsum_const by apply pos_INR.
  apply rsum_le; intros; apply pow_incr; auto using vnorm_le_token_max with pos.
Qed.
End TwoNorm.

(** ** Masks with covers rho: no mask, rho = 1, and the causal one, rho = 2 *)

Section Covered.
Variables (n d : nat) (see : mask) (rho M : R).
Hypotheses (self : sees_self n see) (cover : covers n see rho).
Local Notation c := (phi_inv (INR (n - 1))).
Local Notation N := (sqrt (rho * INR n)).

(** The attention matrix has spectral norm at most (rho n)^(1/4). *)
Theorem P_spectral D z v :
  norm_2 n D (fun i a => rsum n (fun j => P n see (l2_score d) z i j * v j a)) <= sqrt N * norm_2 n D v.
Proof. apply P_norm_2; auto using col_sums_covers with pos. Qed.

(** M is one of the three bounds on the columns of P_ij |z_i - z_j|^2. *)
Definition moment_bound := M = c * (N + 1) \/ M = INR (n - 1) * phi_inv 1 \/
  exists eps, 0 < eps < 1 /\ M = sqrt rho * Rpower (INR n) ((1 + eps) / 2) / (exp 1 * eps).

Lemma moments : moment_bound -> col_moment_le n d see M.
Proof.
  intros [-> | [-> | [eps [He ->]]]].
  - apply col_moments_1; auto using any_seen_by, col_sums_covers with pos.
  - apply col_moments_2; auto using any_seen_by.
  - apply col_moments_3; auto.
Qed.

(** g has the constants 2c + sqrt N + 2 sqrt(c M), N = sqrt(rho n), and, by Schur's test, sqrt((1 + 4c) K) in
    the 2-norm, and K in the sum of the tokens' 2-norms. *)
Theorem core_covered (K := 2 * c + N + 2 * M + 2 * sqrt (c * M * N)) : moment_bound ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (2 * c + sqrt N + 2 * sqrt (c * M)) /\
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (sqrt ((1 + 4 * c) * K)) /\
  lipschitz (token_sum n d) (token_sum n d) (core n d see) K.
Proof.
  intros HM; repeat split;
    [apply core_lipschitz_2|apply core_lipschitz_2_schur|apply core_lipschitz_token_sum];
    auto using any_others, col_sums_covers, moments with pos.
Qed.
End Covered.

(** Without a mask g is (2c + n^(1/4) + 2 sqrt(c M))-Lipschitz in the 2-norm, *)
Corollary core_two_norm n d M (c := phi_inv (INR (n - 1))) : moment_bound n 1 M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) (2 * c + sqrt (sqrt (INR n)) + 2 * sqrt (c * M)).
Proof. rewrite <- (Rmult_1_l (INR n)); apply core_covered; [apply all_self|apply covers_all]. Qed.

(** with a causal one (2c + (2n)^(1/4) + 2 sqrt(c M))-Lipschitz. *)
Corollary core_two_norm_causal n d M (c := phi_inv (INR (n - 1))) : moment_bound n 2 M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d causal) (2 * c + sqrt (sqrt (2 * INR n)) + 2 * sqrt (c * M)).
Proof. apply core_covered; [apply causal_self|apply covers_causal]. Qed.

(** A simpler constant of the same order, n^(1/4) log n. *)
Definition K2 n := sqrt (sqrt (INR n)) + sqrt (8 * (phi_inv (INR (n - 1)))^2 * (sqrt (INR n) + 2)).

(** Without a mask g is K2(n)-Lipschitz in the 2-norm, *)
Theorem core_lipschitz_K2 n d : lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) (K2 n).
Proof.
  set (c := phi_inv (INR (n - 1))); set (r := sqrt (INR n)); set (t := sqrt (c * (c * (r + 1)))).
  assert (c0 : 0 <= c) by apply phi_inv_ge0; assert (r0 : 0 <= r) by apply sqrt_pos.
  assert (t2 : t^2 = c * (c * (r + 1))) by (apply pow2_sqrt; auto with pos).
  apply (lipschitz_le _ _ _ _ (2 * c + sqrt r + 2 * t)); [apply norm_2_ge0| |].
  - unfold K2; fold c r; enough (2 * c + 2 * t <= sqrt (8 * c^2 * (r + 2))) by lra.
    apply sq_le_le; [apply sqrt_pos|rewrite pow2_sqrt by auto with pos]; generalize (pow2_ge_0 (c - t)); lra.
  - apply core_two_norm; left; rewrite Rmult_1_l; reflexivity.
Qed.

(** and K2(n) is never above the published sqrt(n) (4 W((n-1)/e) + 1). *)
Theorem K2_le_published n : (1 <= n)%nat -> K2 n <= sqrt (INR n) * (4 * phi_inv (INR (n - 1)) + 1).
Proof.
  intros Hn; unfold K2; set (c := phi_inv (INR (n - 1))); assert (c0 : 0 <= c) by apply phi_inv_ge0.
  assert (r2 : (sqrt (INR n))^2 = INR n) by (apply pow2_sqrt, pos_INR); set (r := sqrt (INR n)) in *.
  assert (r1 : 1 <= r) by (apply (le_INR 1) in Hn; apply sq_le_le; [apply sqrt_pos|simpl INR in Hn; lra]).
  assert (sqrt r <= r) by (apply sq_le_le; [|rewrite pow2_sqrt]; nra).
  enough (sqrt (8 * c^2 * (r + 2)) <= 4 * c * r) by lra.
  apply sq_le_le; [auto with pos|]; rewrite pow2_sqrt by auto with pos.
  destruct (Nat.eq_dec n 1) as [->|ne]; [unfold c; simpl; rewrite phi_inv_0; lra|].
  assert (2 <= INR n) by (apply (le_INR 2); lia).
  replace ((4 * c * r)^2) with (8 * c^2 * (2 * r^2)) by ring; apply Rmult_le_compat_l; [auto with pos|nra].
Qed.
