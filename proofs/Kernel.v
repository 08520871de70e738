(** The Gaussian kernel is positive semidefinite; what follows for the columns of the attention
    matrix of L2 attention, whose rows alone are normalised. *)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Phi KeyLemma Tokens Core.
Open Scope R_scope.

(** e^(s y) lies below the chord of e^y. *)
Lemma exp_chord s y : 0 <= s <= 1 -> exp (s * y) <= 1 - s + s * exp y.
Proof.
  intros H; assert (E : exp y = exp (s * y) * exp ((1 - s) * y)) by (rewrite <- exp_plus; f_equal; ring).
  assert (F : 1 = exp (s * y) * exp (- (s * y))) by (rewrite <- exp_plus, Rplus_opp_r; symmetry; apply exp_0).
  generalize (exp_ineq1_le ((1 - s) * y)) (exp_ineq1_le (- (s * y))) (exp_pos (s * y)); rewrite E.
  set (a := exp (s * y)) in *; intros X Y a0.
  apply (Rmult_le_compat_l (a * s)) in X; [|nra]; apply (Rmult_le_compat_l (a * (1 - s))) in Y; nra.
Qed.

(** ** Positive semidefinite kernels *)

Definition quad n (G : nat -> nat -> R) u := rsum n (fun i => rsum n (fun k => u i * G i k * u k)).
Definition psd n G := forall u, 0 <= quad n G u.

Lemma rsum2_ext n m f g : (forall i j, (i < n)%nat -> (j < m)%nat -> f i j = g i j) ->
  rsum n (fun i => rsum m (f i)) = rsum n (fun i => rsum m (g i)).
Proof. intros H; apply rsum_ext; intros; apply rsum_ext; auto. Qed.

Lemma rsum2_le n m f g : (forall i j, (i < n)%nat -> (j < m)%nat -> f i j <= g i j) ->
  rsum n (fun i => rsum m (f i)) <= rsum n (fun i => rsum m (g i)).
Proof. intros H; apply rsum_le; intros; apply rsum_le; auto. Qed.

Lemma rsum2_plus n m f g : rsum n (fun i => rsum m (fun j => f i j + g i j)) =
  rsum n (fun i => rsum m (f i)) + rsum n (fun i => rsum m (g i)).
Proof. rewrite <- rsum_plus; apply rsum_ext; intros; apply rsum_plus. Qed.

Lemma rsum2_scal n m k f :
  rsum n (fun i => rsum m (fun j => k * f i j)) = k * rsum n (fun i => rsum m (f i)).
Proof. rewrite <- rsum_scal; apply rsum_ext; intros; apply rsum_scal. Qed.

(** Cauchy-Schwarz for the form against a basis vector. *)
Lemma psd_column n G u j :
  psd n G -> (forall i k, G i k = G k i) -> G j j = 1 -> (j < n)%nat ->
  (rsum n (fun i => u i * G i j))^2 <= quad n G u.
Proof.
  intros Pos Sym One Hj; set (c := rsum n (fun i => u i * G i j)).
  generalize (Pos (fun i => u i - c * delta j i)); unfold quad.
  rewrite (rsum_ext n _ (fun i => (rsum n (fun k => u i * G i k * u k) - c * (u i * G i j))
     - delta j i * (c * rsum n (fun k => G i k * u k) - c * c * G i j))).
  - rewrite !rsum_minus, rsum_delta, rsum_scal by auto; fold c.
    rewrite (rsum_ext n (fun k => G j k * u k) (fun i => u i * G i j))
      by (intros k _; rewrite (Sym j k); ring); fold c; rewrite One; lra.
  - intros i Hi.
    rewrite (rsum_ext n _ (fun k => (u i * G i k * u k - delta j k * (c * (u i * G i k)))
      - c * delta j i * (G i k * u k - delta j k * (c * G i k)))) by (intros; ring).
    rewrite !rsum_minus, rsum_scal, rsum_minus, !rsum_delta by auto; ring.
Qed.

Lemma psd_diag n G H f : psd n G -> (forall i k, H i k = f i * G i k * f k) -> psd n H.
Proof.
  intros Pos E u; eapply Rle_trans; [apply (Pos (fun i => u i * f i))|].
  apply Req_le, rsum2_ext; intros; rewrite E; ring.
Qed.

Lemma psd_plus n G H a : psd n G -> psd n H -> 0 <= a -> psd n (fun i k => G i k + a * H i k).
Proof.
  intros PG PH a0 u; unfold quad.
  rewrite (rsum2_ext n n _ (fun i k => u i * G i k * u k + a * (u i * H i k * u k))) by (intros; ring).
  rewrite rsum2_plus, rsum2_scal; apply Rplus_le_le_0_compat; [apply PG|apply Rmult_le_pos; auto; apply PH].
Qed.

(** Schur's product with a Gram matrix, power by power. *)
Lemma gram_power_psd n d z m : psd n (fun i k => vdot d (z i) (z k) ^ m).
Proof.
  induction m as [|m IH]; intros u; unfold quad.
  - rewrite (rsum_ext n _ (fun i => u i * rsum n u))
      by (intros; rewrite <- rsum_scal; apply rsum_ext; intros; simpl; ring).
    rewrite rsum_scal_r; change (fun i => u i) with u; nra.
  - rewrite (rsum2_ext n n _ (fun i k => rsum d (fun b =>
      (u i * z i b) * vdot d (z i) (z k) ^ m * (u k * z k b)))).
    + rewrite (rsum_ext n _ (fun i => rsum d (fun b => rsum n (fun k =>
        (u i * z i b) * vdot d (z i) (z k) ^ m * (u k * z k b))))) by (intros; apply rsum_swap).
      rewrite rsum_swap; apply rsum_ge0; intros b _; apply (IH (fun i => u i * z i b)).
    + intros i k _ _; rewrite (rsum_ext d _ (fun b => (u i * vdot d (z i) (z k) ^ m * u k)
        * (z i b * z k b))) by (intros; ring).
      rewrite rsum_scal; fold (vdot d (z i) (z k)); simpl; ring.
Qed.

Lemma is_lim_seq_rsum k (F : nat -> nat -> R) (L : nat -> R) :
  (forall j, is_lim_seq (fun m => F m j) (L j)) -> is_lim_seq (fun m => rsum k (F m)) (rsum k L).
Proof.
  intros H; induction k as [|k IH]; simpl; [apply is_lim_seq_const|]; apply is_lim_seq_plus'; auto.
Qed.

(** The exponential series of a Gram matrix. *)
Lemma gram_exp_psd n d z s : 0 <= s -> psd n (fun i k => exp (s * vdot d (z i) (z k))).
Proof.
  intros Hs u; pose (part m x := sum_f_R0 (fun l => / INR (fact l) * x ^ l) m).
  apply (is_lim_seq_le (fun _ => 0)
    (fun m => quad n (fun i k => part m (s * vdot d (z i) (z k))) u) 0
    (quad n (fun i k => exp (s * vdot d (z i) (z k))) u)); [|apply is_lim_seq_const|].
  - intros m; revert u; induction m as [|m IH].
    + apply (psd_diag n _ _ (fun _ => 1) (gram_power_psd n d z 0)); intros.
      unfold part; simpl; field.
    + apply (psd_diag n _ _ (fun _ => 1) (psd_plus n _ _ (/ INR (fact (S m)) * s ^ S m) IH
        (gram_power_psd n d z (S m)) ltac:(apply Rmult_le_pos;
          [apply Rlt_le, Rinv_0_lt_compat, INR_fact_lt_0|apply pow_le, Hs]))).
      intros; unfold part; rewrite tech5, Rpow_mult_distr; ring.
  - apply is_lim_seq_rsum; intros i; apply is_lim_seq_rsum; intros k.
    apply is_lim_seq_mult'; [apply is_lim_seq_mult'|]; try apply is_lim_seq_const.
    apply is_lim_seq_Reals; unfold part, exp; destruct (exist_exp _) as [l Hl]; exact Hl.
Qed.

Lemma sqdist_vdot d z i j :
  sqdist d z i j = vdot d (z i) (z i) + vdot d (z j) (z j) - 2 * vdot d (z i) (z j).
Proof.
  unfold sqdist; rewrite vnorm_sq; unfold vdot; rewrite <- rsum_scal, <- rsum_plus, <- rsum_minus.
  apply rsum_ext; intros; ring.
Qed.

(** The Gaussian kernel e^(-s |z_i - z_j|^2) is positive semidefinite. *)
Theorem gauss_psd n d z s : 0 <= s -> psd n (fun i k => exp (s * l2_score d z i k)).
Proof.
  intros Hs; apply (psd_diag n _ _ (fun i => exp (- (s * vdot d (z i) (z i))))
    (gram_exp_psd n d z (2 * s) ltac:(lra))).
  intros i k; rewrite <- !exp_plus; f_equal; unfold l2_score; rewrite sqdist_vdot; ring.
Qed.

(** ** Columns of P *)

Section Columns.
Variables (n d : nat) (see : mask).
Local Notation score := (l2_score d).
Local Notation A := (P n see (l2_score d)).

(** For all z: each column of P sums to at most sigma, and each column of P_ij |z_i - z_j|^2 to
    at most M. *)
Definition col_sum_le sigma := forall z j, (j < n)%nat -> rsum n (fun i => A z i j) <= sigma.
Definition col_moment_le M :=
  forall z j, (j < n)%nat -> rsum n (fun i => A z i j * sqdist d z i j) <= M.

(** Of any two tokens: each sees the other (rho = 1), one at least sees the other (rho = 2). *)
Definition covers rho := forall i j, (i < n)%nat -> (j < n)%nat -> 2 <= rho * (vis see i j + vis see j i).

(** Every token is seen by at most k others. *)
Definition seen_by k := forall j, (j < n)%nat -> rsum n (fun i => vis see i j) <= 1 + k.

Hypothesis self : sees_self n see.

Lemma weight_self z i : (i < n)%nat -> weight see score z i i = 1.
Proof.
  intros Hi; unfold weight, l2_score; rewrite (vis_self n), sqdist_same, Ropp_0, exp_0 by auto; ring.
Qed.

Lemma total_ge1 z i : (i < n)%nat -> 1 <= total n see score z i.
Proof.
  intros Hi; rewrite <- (weight_self z i Hi); apply (rsum_ge_term n (weight see score z i)); auto.
  intros; apply weight_ge0.
Qed.

Lemma inv_total z i : (i < n)%nat -> 0 < / total n see score z i <= 1.
Proof.
  intros Hi; assert (T := total_ge1 z i Hi); split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1; apply Rinv_le_contravar; lra.
Qed.

Lemma l2_P_ge0 z i j : (i < n)%nat -> 0 <= A z i j.
Proof. apply P_ge0; intros k Hk; exists k; auto. Qed.

Lemma l2_P_eq z i j : A z i j = vis see i j * / total n see score z i * exp (- sqdist d z i j).
Proof. unfold P, weight, l2_score, Rdiv; ring. Qed.

Lemma cover_step rho a b g f f' u u' :
  0 < g -> 0 <= a -> 0 <= b -> 2 <= rho * (a + b) -> 0 <= f <= u -> 0 <= f' <= u' -> u <= 1 -> u' <= 1 ->
  f * g * f' <= rho / 2 * (u * (a * g) + u' * (b * g)).
Proof.
  intros g0 a0 b0 H F F' U U'.
  replace (rho / 2 * _) with (rho / 2 * (a * u + b * u') * g) by ring.
  replace (f * g * f') with (f * f' * g) by ring; apply Rmult_le_compat_r; [lra|].
  assert (0 <= f * f' <= u /\ f * f' <= u') by (repeat split; nra); assert (0 < rho) by nra.
  apply Rle_trans with (rho / 2 * ((a + b) * (f * f'))); [|apply Rmult_le_compat_l]; nra.
Qed.

(** Cauchy-Schwarz in the kernel e^(-s |z_i - z_j|^2) bounds a column of its values by its rows. *)
Lemma column_le rho s b z j : covers rho -> 0 <= s -> (j < n)%nat ->
  (forall i, (i < n)%nat ->
    rsum n (fun k => vis see i k * exp (s * score z i k)) <= total n see score z i * b) ->
  rsum n (fun i => vis see i j * / total n see score z i * exp (s * score z i j)) <= sqrt (rho * INR n * b).
Proof.
  intros C s0 Hj Hb; set (u := fun i => / total n see score z i); set (G := fun i k => exp (s * score z i k)).
  assert (r0 : 0 < rho) by (generalize (C j j Hj Hj) (vis_ge0 see j j); nra).
  assert (Sym : forall i k, G i k = G k i)
    by (intros; unfold G, l2_score; rewrite sqdist_sym; reflexivity).
  assert (One : G j j = 1) by (unfold G, l2_score; rewrite sqdist_same, Ropp_0, Rmult_0_r; apply exp_0).
  pose (B := fun i k => u i * (vis see i k * G i k)).
  assert (Q : (rsum n (fun i => vis see i j * u i * G i j))^2 <= rho * INR n * b).
  { eapply Rle_trans; [apply (psd_column n G _ j (gauss_psd n d z s s0) Sym One Hj)|].
    apply Rle_trans with (rsum n (fun i => rsum n (fun k => rho / 2 * (B i k + B k i)))).
    - apply rsum2_le; intros i k Hi Hk; unfold B; rewrite (Sym k i).
      assert (U := inv_total z i Hi); assert (V := inv_total z k Hk); fold (u i) in U; fold (u k) in V.
      apply cover_step; auto using vis_ge0; try apply exp_pos; try apply U; try apply V.
      + destruct (vis_cases see i j) as [-> | ->]; lra.
      + destruct (vis_cases see k j) as [-> | ->]; lra.
    - rewrite rsum2_scal, rsum2_plus, (rsum_swap n n (fun i k => B k i)).
      assert (S : rsum n (fun i => rsum n (B i)) <= INR n * b).
      { rewrite <- rsum_const; apply rsum_le; intros i Hi; unfold B; rewrite rsum_scal.
        assert (T := total_ge1 z i Hi); apply Rmult_le_reg_l with (total n see score z i); [lra|].
        unfold u; rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra; apply Hb, Hi. }
      apply (Rmult_le_compat_l rho) in S; [|lra].
      eapply Rle_trans; [|rewrite Rmult_assoc; exact S]; apply Req_le.
      set (s1 := rsum n (fun i => rsum n (B i))); transitivity (rho / 2 * (s1 + s1)); [reflexivity|field]. }
  apply sq_le_le; [apply sqrt_pos|rewrite pow2_sqrt; [exact Q|]].
  eapply Rle_trans; [apply pow2_ge_0|exact Q].
Qed.

(** The columns of P sum to at most sqrt(rho n): sqrt(n) without a mask, sqrt(2n) with a causal one. *)
Theorem col_sums_covers rho : covers rho -> col_sum_le (sqrt (rho * INR n)).
Proof.
  intros C z j Hj; rewrite <- (Rmult_1_r (rho * INR n)).
  eapply Rle_trans; [|apply (column_le rho 1 1 z j); auto; [lra|]].
  - apply Req_le, rsum_ext; intros; rewrite Rmult_1_l; apply l2_P_eq.
  - intros i _; rewrite Rmult_1_r; apply Req_le, rsum_ext; intros; rewrite Rmult_1_l; reflexivity.
Qed.

(** With any mask they sum to at most the number of tokens that see j. *)
Theorem col_sums_seen_by k : seen_by k -> col_sum_le (1 + k).
Proof.
  intros S z j Hj; eapply Rle_trans; [apply rsum_le|apply (S j Hj)]; intros i Hi.
  apply P_le_vis; auto using self_row.
Qed.

(** Three bounds on the columns of P_ij |z_i - z_j|^2, from bounds on their entries. *)
Lemma col_moments_of t B k sigma : 0 <= t -> 0 <= B -> seen_by k -> col_sum_le sigma ->
  (forall z i j, (i < n)%nat -> (j < n)%nat -> i <> j -> A z i j * (sqdist d z i j - t) <= B) ->
  col_moment_le (t * sigma + k * B).
Proof.
  intros t0 B0 S C H z j Hj.
  apply Rle_trans with (rsum n (fun i => t * A z i j + (vis see i j * B - delta j i * B))).
  - apply rsum_le; intros i Hi; destruct (delta_cases j i) as [[<- ->]|[ne ->]].
    + rewrite (vis_self n), sqdist_same by auto; generalize (l2_P_ge0 z j j Hj); nra.
    + specialize (H z i j Hi Hj (not_eq_sym ne)).
      destruct (vis_cases see i j) as [E|E]; [rewrite l2_P_eq, E|rewrite E]; lra.
  - rewrite rsum_plus, rsum_minus, (rsum_delta n j (fun _ => B)), rsum_scal_r, rsum_scal by auto.
    generalize (C z j Hj) (S j Hj); nra.
Qed.

(** W(k/e) (sigma + 1) bounds them, k as in seen_by; *)
Theorem col_moments_1 k sigma (t := phi_inv k) :
  0 <= k -> seen_by k -> col_sum_le sigma -> col_moment_le (t * (sigma + 1)).
Proof.
  intros k0 S C; replace (t * (sigma + 1)) with (t * sigma + k * exp (- (t + 1)))
    by (unfold t; rewrite phi_inv_root by auto; ring).
  apply col_moments_of; auto; [apply phi_inv_ge0|apply Rlt_le, exp_pos|]; intros z i j Hi _ _.
  rewrite l2_P_eq; assert (U := inv_total z i Hi).
  assert (X := shifted_exp_max (sqdist d z i j) t); assert (B0 := exp_pos (- (t + 1))).
  apply (Rmult_le_compat_l (/ total n see score z i)) in X; [|lra].
  destruct (vis_cases see i j) as [-> | ->]; nra.
Qed.

(** so does k W(1/e); *)
Theorem col_moments_2 k : seen_by k -> col_moment_le (k * phi_inv 1).
Proof.
  intros S; rewrite <- (Rplus_0_l (_ * _)), <- (Rmult_0_l (1 + k)).
  apply col_moments_of; auto using phi_inv_ge0, col_sums_seen_by; [lra|]; intros z i j Hi Hj ne.
  set (c := phi_inv 1); assert (c0 : 0 <= c) by apply phi_inv_ge0.
  assert (T : A z i i + A z i j <= 1).
  { rewrite <- (P_sum n see score (self_row n see self) z i Hi), <- (rsum_delta n i (A z i)) by auto.
    rewrite <- (rsum_delta n j (A z i)) at 1 by auto; rewrite <- rsum_plus.
    apply rsum_le; intros l _; generalize (l2_P_ge0 z i l Hi).
    destruct (delta_cases i l) as [[E ->]|[_ ->]], (delta_cases j l) as [[E' ->]|[_ ->]]; congruence || lra. }
  assert (X := shifted_exp_max (sqdist d z i j) c).
  assert (K := phi_inv_root 1 ltac:(lra)); fold c in K; rewrite Rmult_1_l in K; rewrite K in X.
  assert (U := inv_total z i Hi); apply (Rmult_le_compat_l (/ total n see score z i)) in X; [|lra].
  rewrite !l2_P_eq, (vis_self n), sqdist_same, Ropp_0, exp_0 in * by auto.
  destruct (vis_cases see i j) as [E|E]; rewrite E in *; nra.
Qed.

(** Concavity: the sum of powers s of the weights of a row. *)
Lemma power_sum_le s z i : 0 <= s <= 1 -> (i < n)%nat ->
  rsum n (fun k => vis see i k * exp (s * score z i k)) <= total n see score z i * Rpower (INR n) (1 - s).
Proof.
  intros Hs Hi; assert (N : 0 < INR n) by (apply lt_0_INR; lia); assert (T := total_ge1 z i Hi).
  set (g := exp (- (s * ln (INR n)))); assert (g0 : 0 < g) by apply exp_pos.
  replace (Rpower (INR n) (1 - s)) with (g * INR n)
    by (unfold g, Rpower; rewrite <- (exp_ln (INR n) N) at 2; rewrite <- exp_plus; f_equal; ring).
  apply Rle_trans with (rsum n (fun k => g * (1 - s + s * INR n * weight see score z i k))).
  - apply rsum_le; intros k _; assert (C := exp_chord s (score z i k + ln (INR n)) Hs).
    rewrite exp_plus, exp_ln, Rmult_plus_distr_l, exp_plus in C by exact N.
    apply (Rmult_le_compat_l g) in C; [|lra].
    rewrite <- Rmult_assoc, (Rmult_comm g (exp _)), Rmult_assoc in C; unfold g at 1 in C.
    rewrite <- exp_plus, Rplus_opp_l, exp_0, Rmult_1_r in C.
    unfold weight; destruct (vis_cases see i k) as [-> | ->]; [nra|lra].
  - rewrite rsum_scal, rsum_plus, rsum_const, rsum_scal; fold (total n see score z i).
    assert (0 <= g * INR n * ((1 - s) * (total n see score z i - 1)))
      by (repeat apply Rmult_le_pos; lra); lra.
Qed.

(** and so does sqrt(rho) n^((1+eps)/2) / (e eps), 0 < eps < 1. *)
Theorem col_moments_3 rho eps : covers rho -> 0 < eps < 1 ->
  col_moment_le (sqrt rho * Rpower (INR n) ((1 + eps) / 2) / (exp 1 * eps)).
Proof.
  intros C He z j Hj; assert (N : 0 < INR n) by (apply lt_0_INR; lia); assert (e0 := exp_pos 1).
  set (D := / (exp 1 * eps)); assert (D0 : 0 < D) by (apply Rinv_0_lt_compat; nra).
  replace (sqrt rho * _) with (sqrt (rho * INR n * Rpower (INR n) eps)).
  2:{ assert (r0 : 0 <= rho) by (generalize (C j j Hj Hj) (vis_ge0 see j j); nra).
      rewrite Rmult_assoc, sqrt_mult_alt by auto; f_equal; rewrite <- (Rpower_1 (INR n) N) at 1.
      rewrite <- Rpower_plus, <- Rpower_sqrt, Rpower_mult by apply exp_pos; reflexivity. }
  apply Rle_trans with (rsum n (fun i =>
    D * (vis see i j * / total n see score z i * exp ((1 - eps) * score z i j)))).
  - apply rsum_le; intros i Hi; rewrite l2_P_eq; assert (U := inv_total z i Hi).
    assert (X := shifted_exp_max (eps * sqdist d z i j) 0); rewrite Rplus_0_l, Rminus_0_r, (exp_Ropp 1) in X.
    apply (Rmult_le_compat_l (/ eps)) in X; [|apply Rlt_le, Rinv_0_lt_compat; lra].
    replace (/ eps * / exp 1) with D in X by (unfold D; field; lra).
    rewrite Rmult_assoc, <- (Rmult_assoc (/ eps)), Rinv_l, Rmult_1_l in X by lra.
    replace (exp (- sqdist d z i j)) with (exp ((1 - eps) * score z i j) * exp (- (eps * sqdist d z i j)))
      by (rewrite <- exp_plus; f_equal; unfold l2_score; ring).
    assert (W : 0 <= vis see i j * / total n see score z i * exp ((1 - eps) * score z i j))
      by (repeat apply Rmult_le_pos; [apply vis_ge0|lra|apply Rlt_le, exp_pos]).
    apply (Rmult_le_compat_l _ _ _ W) in X; lra.
  - rewrite rsum_scal, Rmult_comm; apply Rmult_le_compat_r; [apply Rlt_le, D0|].
    apply column_le; auto; [lra|]; intros i Hi.
    assert (X := power_sum_le (1 - eps) z i ltac:(lra) Hi).
    replace (1 - (1 - eps)) with eps in X by ring; exact X.
Qed.
End Columns.

(** ** Masks *)

Lemma rsum_le1 n (f : nat -> R) j : (j < n)%nat -> (forall i, f i <= 1) -> rsum n f <= 1 + INR (n - 1).
Proof.
  intros Hj H; eapply Rle_trans; [apply rsum_le; intros; apply H|].
  rewrite rsum_const, minus_INR by lia; simpl; lra.
Qed.

Lemma any_others n see : others_seen n see (INR (n - 1)).
Proof. intros i Hi; apply (rsum_le1 n _ i Hi), vis_le1. Qed.

Lemma any_seen_by n see : seen_by n see (INR (n - 1)).
Proof. intros j Hj; apply (rsum_le1 n _ j Hj); intros; apply vis_le1. Qed.

Lemma covers_all n : covers n all_tokens 1.
Proof. intros i j _ _; unfold vis, all_tokens; lra. Qed.

Lemma causal_self n : sees_self n causal.
Proof. intros i _; apply Nat.leb_refl. Qed.

Lemma covers_causal n : covers n causal 2.
Proof.
  intros i j _ _; unfold vis, causal; destruct (Nat.leb_spec j i), (Nat.leb_spec i j); lia || lra.
Qed.
