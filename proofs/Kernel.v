(** The Gaussian kernel is positive semidefinite; what follows for the columns of the attention
    matrix of L2 attention, whose rows alone are normalised. *)
From Lipsa Require Import Sums Phi KeyLemma Tokens Core.

(** e^x lies above its tangents, and e^(s y) below the chord of e^y. *)
Lemma exp_tangent x y : exp x * (1 + (y - x)) <= exp y.
Proof.
  replace y with (x + (y - x)) at 2 by ring; rewrite exp_plus.
  apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|apply exp_ineq1_le].
Qed.

Lemma exp_chord s y : 0 <= s <= 1 -> exp (s * y) <= 1 - s + s * exp y.
Proof. intros H; generalize (exp_tangent (s * y) y) (exp_tangent (s * y) 0); rewrite exp_0; nra. Qed.

(** ** Positive semidefinite kernels *)

Definition quad n (G : nat -> nat -> R) u := rsum n (fun i => rsum n (fun k => u i * G i k * u k)).
Definition psd n G := forall u, 0 <= quad n G u.

(** Cauchy-Schwarz for the form against a basis vector. *)
Lemma psd_column n G u j :
  psd n G -> (forall i k, G i k = G k i) -> G j j = 1 -> (j < n)%nat ->
  (rsum n (fun i => u i * G i j))^2 <= quad n G u.
Proof.
  intros Pos Sym One Hj; set (c := rsum n (fun i => u i * G i j)).
  assert (E : rsum n (fun k => G j k * u k) = c) by (apply rsum_ext; intros; rewrite Sym; ring).
  generalize (Pos (fun i => u i - c * delta j i)); unfold quad.
  rewrite (rsum_ext n _ (fun i => (rsum n (fun k => u i * G i k * u k) - c * (u i * G i j))
     - delta j i * (c * (rsum n (fun k => G i k * u k) - c * G i j)))).
  - rewrite !rsum_minus, rsum_delta, rsum_scal, E, One by auto; fold c; lra.
  - intros i _; rewrite (rsum_ext n _ (fun k => (u i * G i k * u k - delta j k * (c * (u i * G i k)))
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
  rewrite rsum2_plus, rsum2_scal; generalize (PG u) (PH u); unfold quad; nra.
Qed.

(** Schur's product with a Gram matrix, power by power. *)
Lemma gram_power_psd n d z m : psd n (fun i k => vdot d (z i) (z k) ^ m).
Proof.
  induction m as [|m IH]; intros u; unfold quad.
  - rewrite (rsum_ext n _ (fun i => u i * rsum n u))
      by (intros; rewrite <- rsum_scal; apply rsum_ext; intros; simpl; ring).
    rewrite rsum_scal_r; apply Rle_0_sqr.
  - rewrite (rsum_ext n _ (fun i => rsum d (fun b => rsum n (fun k =>
      (u i * z i b) * vdot d (z i) (z k) ^ m * (u k * z k b))))).
    + rewrite rsum_swap; apply rsum_ge0; intros b _; apply (IH (fun i => u i * z i b)).
    + intros i _; rewrite rsum_swap; apply rsum_ext; intros k _; simpl; unfold vdot at 1.
      rewrite <- rsum_scal_r, <- rsum_scal, <- rsum_scal_r; apply rsum_ext; intros; ring.
Qed.

Lemma is_lim_seq_rsum k (F : nat -> nat -> R) (L : nat -> R) :
  (forall j, is_lim_seq (fun m => F m j) (L j)) -> is_lim_seq (fun m => rsum k (F m)) (rsum k L).
Proof. intros H; induction k as [|k IH]; simpl; [apply is_lim_seq_const|]; apply is_lim_seq_plus'; auto. Qed.

(** The exponential series of a Gram matrix. *)
Lemma gram_exp_psd n d z s : 0 <= s -> psd n (fun i k => exp (s * vdot d (z i) (z k))).
Proof.
  intros Hs u; pose (part m x := sum_f_R0 (fun l => / INR (fact l) * x ^ l) m).
  apply (is_lim_seq_le (fun _ => 0) (fun m => quad n (fun i k => part m (s * vdot d (z i) (z k))) u)
    0 (quad n (fun i k => exp (s * vdot d (z i) (z k))) u)); [|apply is_lim_seq_const|].
  - intros m; revert u; induction m as [|m IH].
    + apply (psd_diag n _ _ (fun _ => 1) (gram_power_psd n d z 0)); intros; unfold part; simpl; field.
    + assert (a0 : 0 <= / INR (fact (S m)) * s ^ S m)
        by (apply Rmult_le_pos; [apply Rlt_le, Rinv_0_lt_compat, INR_fact_lt_0|apply pow_le, Hs]).
      apply (psd_diag n _ _ (fun _ => 1) (psd_plus n _ _ _ IH (gram_power_psd n d z (S m)) a0)).
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
Local Notation T := (total n see (l2_score d)).

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

Lemma l2_score_same (z : tokens) i : score z i i = 0.
Proof. unfold l2_score; rewrite sqdist_same; ring. Qed.

Lemma weight_self z i : (i < n)%nat -> weight see score z i i = 1.
Proof. intros Hi; unfold weight; rewrite (vis_self n), l2_score_same, exp_0 by auto; ring. Qed.

Lemma total_ge1 z i : (i < n)%nat -> 1 <= T z i.
Proof.
  intros Hi; rewrite <- (weight_self z i Hi).
  apply (rsum_ge_term n (weight see score z i)); auto using weight_ge0.
Qed.

Lemma inv_total z i : (i < n)%nat -> 0 < / T z i <= 1.
Proof.
  intros Hi; assert (H := total_ge1 z i Hi); split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1; apply Rinv_le_contravar; lra.
Qed.

Lemma l2_P_ge0 z i j : (i < n)%nat -> 0 <= A z i j.
Proof. apply P_ge0; intros k Hk; exists k; auto. Qed.

Lemma l2_P_eq z i j : A z i j = vis see i j * / T z i * exp (- sqdist d z i j).
Proof. unfold P, weight, l2_score, Rdiv; ring. Qed.

(** Cauchy-Schwarz in the kernel e^(-s |z_i - z_j|^2) bounds a column of its values by its rows. *)
Lemma column_le rho s b z j : covers rho -> 0 <= s -> (j < n)%nat ->
  (forall i, (i < n)%nat -> rsum n (fun k => vis see i k * exp (s * score z i k)) <= T z i * b) ->
  rsum n (fun i => vis see i j * / T z i * exp (s * score z i j)) <= sqrt (rho * INR n * b).
Proof.
  intros C s0 Hj Hb; pose (u i := / T z i); pose (G i k := exp (s * score z i k)).
  assert (U : forall i, (i < n)%nat -> 0 < u i <= 1) by (intros; apply inv_total; auto).
  assert (W : forall i k, (i < n)%nat -> 0 < u i * G i k)
    by (intros; apply Rmult_lt_0_compat, exp_pos; apply U; auto).
  assert (Sym : forall i k, G i k = G k i) by (intros; unfold G, l2_score; rewrite sqdist_sym; auto).
  pose (B i k := vis see i k * (u i * G i k) * u k); set (X := rsum n (fun i => rsum n (B i))).
  assert (S : X <= INR n * b).
  { rewrite <- rsum_const; apply rsum_le; intros i Hi; assert (H := total_ge1 z i Hi).
    apply Rle_trans with (rsum n (fun k => vis see i k * G i k) * u i).
    - rewrite <- rsum_scal_r; apply rsum_le; intros k Hk; unfold B.
      generalize (U k Hk) (Rmult_le_pos _ _ (vis_ge0 see i k) (Rlt_le _ _ (W i k Hi))); nra.
    - apply Rle_div_l; [lra|rewrite Rmult_comm; apply Hb, Hi]. }
  assert (Q : quad n G (fun i => vis see i j * u i) <= rho / 2 * (X + X)).
  { apply Rle_trans with (rsum n (fun i => rsum n (fun k => rho / 2 * (B i k + B k i))));
      [|rewrite rsum2_scal, rsum2_plus, (rsum_swap n n (fun i k => B k i)); apply Rle_refl].
    apply rsum2_le; intros i k Hi Hk; unfold B; rewrite (Sym k i).
    assert (V := Rmult_lt_0_compat _ _ (W i k Hi) (proj1 (U k Hk))).
    generalize (Rmult_le_compat_r _ _ _ (Rlt_le _ _ V) (C i k Hi Hk)).
    destruct (vis_cases see i j) as [-> | ->], (vis_cases see k j) as [-> | ->]; lra. }
  apply sq_le_le; [apply sqrt_pos|]; eapply Rle_trans, le_sqrt_sq; eapply Rle_trans.
  - apply (psd_column n G _ j (gauss_psd n d z s s0) Sym); auto.
    unfold G; rewrite l2_score_same, Rmult_0_r; apply exp_0.
  - assert (0 < rho) by (generalize (C j j Hj Hj) (vis_ge0 see j j); nra).
    apply (Rle_trans _ _ _ Q); apply (Rmult_le_compat_l rho) in S; lra.
Qed.

(** The columns of P sum to at most sqrt(rho n): sqrt(n) without a mask, sqrt(2n) with a causal one. *)
Theorem col_sums_covers rho : covers rho -> col_sum_le (sqrt (rho * INR n)).
Proof.
  intros C z j Hj; rewrite <- (Rmult_1_r (rho * INR n)).
  eapply Rle_trans; [|apply (column_le rho 1 1 z j C); auto using Rle_0_1].
  - apply Req_le, rsum_ext; intros; rewrite Rmult_1_l; apply l2_P_eq.
  - intros i _; rewrite Rmult_1_r; apply Req_le, rsum_ext; intros; rewrite Rmult_1_l; reflexivity.
Qed.

(** With any mask they sum to at most the number of tokens that see j. *)
Theorem col_sums_seen_by k : seen_by k -> col_sum_le (1 + k).
Proof.
  intros S z j Hj; eapply Rle_trans; [apply rsum_le|apply (S j Hj)]; intros.
  apply P_le_vis; auto using self_row.
Qed.

(** Three bounds on the columns of P_ij |z_i - z_j|^2, from bounds on the entries that are seen. *)
Lemma col_moments_of t B k sigma : 0 <= t -> 0 <= B -> seen_by k -> col_sum_le sigma ->
  (forall z i j, (i < n)%nat -> (j < n)%nat -> i <> j -> see i j = true ->
    (sqdist d z i j - t) * exp (- sqdist d z i j) <= T z i * B) ->
  col_moment_le (t * sigma + k * B).
Proof.
  intros t0 B0 S C H z j Hj.
  apply Rle_trans with (rsum n (fun i => t * A z i j + (vis see i j * B - delta j i * B))).
  - apply rsum_le; intros i Hi; destruct (delta_cases j i) as [[<- ->]|[ne ->]].
    + rewrite (vis_self n), sqdist_same by auto; generalize (l2_P_ge0 z j j Hj); nra.
    + rewrite l2_P_eq; unfold vis; destruct (see i j) eqn:E; [|lra].
      assert (U := inv_total z i Hi); assert (X := H z i j Hi Hj (not_eq_sym ne) E).
      apply (Rmult_le_compat_l (/ T z i)) in X; [|lra].
      rewrite <- (Rmult_assoc _ _ B), Rinv_l in X by (generalize (total_ge1 z i Hi); lra); lra.
  - rewrite rsum_plus, rsum_minus, (rsum_delta n j (fun _ => B)), rsum_scal_r, rsum_scal by auto.
    generalize (C z j Hj) (S j Hj); nra.
Qed.

(** W(k/e) (sigma + 1) bounds them, k as in seen_by; *)
Theorem col_moments_1 k sigma (t := phi_inv k) :
  0 <= k -> seen_by k -> col_sum_le sigma -> col_moment_le (t * (sigma + 1)).
Proof.
  intros k0 S C; replace (t * (sigma + 1)) with (t * sigma + k * exp (- (t + 1)))
    by (unfold t; rewrite phi_inv_root by auto; ring).
  apply col_moments_of; unfold t; auto with pos; intros z i j Hi _ _ _; fold t.
  generalize (shifted_exp_max (sqdist d z i j) t) (exp_pos (- (t + 1))) (total_ge1 z i Hi); nra.
Qed.

(** so does k W(1/e); *)
Theorem col_moments_2 k : seen_by k -> col_moment_le (k * phi_inv 1).
Proof.
  intros S; rewrite <- (Rplus_0_l (_ * _)), <- (Rmult_0_l (1 + k)).
  apply col_moments_of; auto using col_sums_seen_by with pos; intros z i j Hi Hj ne E; set (c := phi_inv 1).
  assert (H : 1 + exp (- sqdist d z i j) <= T z i).
  { rewrite <- (weight_self z i Hi), <- (Rmult_1_l (exp _)).
    replace (1 * _) with (weight see score z i j) by (unfold weight, vis; rewrite E; reflexivity).
    apply rsum_ge_two; auto using weight_ge0. }
  apply (Rmult_le_compat_l c) in H; [|apply phi_inv_ge0].
  assert (X := shifted_exp_max (sqdist d z i j) c); assert (R := phi_inv_root 1 Rle_0_1); fold c in R; lra.
Qed.

(** The sum of powers s of the weights of a row: e^(s y) lies below the chord of e^y. *)
Lemma power_sum_le s z i : 0 <= s <= 1 -> (i < n)%nat ->
  rsum n (fun k => vis see i k * exp (s * score z i k)) <= T z i * Rpower (INR n) (1 - s).
Proof.
  intros Hs Hi; assert (N : 0 < INR n) by (apply lt_0_INR; lia); set (h := exp (s * ln (INR n))).
  replace (Rpower (INR n) (1 - s)) with (INR n * / h)
    by (unfold Rminus; rewrite Rpower_plus, Rpower_1, Rpower_Ropp; auto).
  rewrite <- Rmult_assoc; apply Rle_div_r; [apply exp_pos|]; rewrite <- rsum_scal_r.
  apply Rle_trans with (rsum n (fun k => (1 - s) + s * INR n * weight see score z i k)).
  - apply rsum_le; intros k _; assert (C := exp_chord s (score z i k + ln (INR n)) Hs).
    rewrite Rmult_plus_distr_l, !exp_plus, exp_ln in C by exact N; fold h in C.
    unfold weight; destruct (vis_cases see i k) as [-> | ->]; lra.
  - rewrite rsum_plus, rsum_const, rsum_scal; fold (T z i).
    assert (0 <= INR n * (1 - s) * (T z i - 1))
      by (generalize (total_ge1 z i Hi); intros; repeat apply Rmult_le_pos; lra); lra.
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
  apply Rle_trans with (rsum n (fun i => vis see i j * / T z i * exp ((1 - eps) * score z i j) * D)).
  - apply rsum_le; intros i Hi; rewrite l2_P_eq; unfold l2_score; set (q := sqdist d z i j).
    replace (exp (- q)) with (exp ((1 - eps) * - q) * exp (- (eps * q)))
      by (rewrite <- exp_plus; f_equal; ring).
    rewrite <- Rmult_assoc, (Rmult_assoc _ _ q); apply Rmult_le_compat_l.
    + repeat apply Rmult_le_pos; [apply vis_ge0|apply Rlt_le, inv_total, Hi|apply Rlt_le, exp_pos].
    + apply (Rmult_le_reg_l eps); [lra|]; replace (eps * D) with (/ exp 1) by (unfold D; field; lra).
      generalize (shifted_exp_max (eps * q) 0); rewrite Rplus_0_l, (exp_Ropp 1); lra.
  - rewrite rsum_scal_r; apply Rmult_le_compat_r, column_le; auto; [apply Rlt_le, D0|lra|]; intros i Hi.
    replace (Rpower (INR n) eps) with (Rpower (INR n) (1 - (1 - eps))) by (f_equal; ring).
    apply power_sum_le; auto; lra.
Qed.
End Columns.

#[export] Hint Resolve l2_P_ge0 : pos.

(** ** Masks *)

Lemma any_others n see : others_seen n see (INR (n - 1)).
Proof. intros i Hi; eapply Rle_trans; [|apply (all_others n i Hi)]; apply rsum_le; intros; apply vis_le1. Qed.

Lemma any_seen_by n see : seen_by n see (INR (n - 1)).
Proof. exact (any_others n (fun i j => see j i)). Qed.

Lemma covers_all n : covers n all_tokens 1.
Proof. intros i j _ _; unfold vis, all_tokens; lra. Qed.

Lemma causal_self n : sees_self n causal.
Proof. intros i _; apply Nat.leb_refl. Qed.

Lemma covers_causal n : covers n causal 2.
Proof. intros i j _ _; unfold vis, causal; destruct (Nat.leb_spec j i), (Nat.leb_spec i j); lia || lra. Qed.
