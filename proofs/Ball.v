(** Dot-product attention is Lipschitz on a ball: on inputs whose tokens have 2-norm at most r. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Tokens Core DotProduct.
Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [apply Rlt_le, exp_increasing, H|apply Rle_refl]. Qed.

(** Means with weights p: Cauchy-Schwarz, and the square of a bounded function. *)
Lemma mean_product_le n p f h F H :
  (forall j, (j < n)%nat -> 0 <= p j) -> 0 <= F -> 0 <= H ->
  rsum n (fun j => p j * (f j)^2) <= F^2 -> rsum n (fun j => p j * (h j)^2) <= H^2 ->
  rsum n (fun j => p j * (f j * h j)) <= F * H.
Proof.
  intros p0 F0 H0 HF HH; apply sq_le_le; [nra|]; eapply Rle_trans; [apply cauchy_schwarz, p0|].
  rewrite Rpow_mult_distr; apply Rmult_le_compat; auto; apply rsum_ge0; intros;
    apply Rmult_le_pos; auto; apply pow2_ge_0.
Qed.

Lemma mean_square_le n p f B :
  (forall j, (j < n)%nat -> 0 <= p j) -> rsum n p = 1 -> (forall j, (j < n)%nat -> Rabs (f j) <= B) ->
  rsum n (fun j => p j * (f j)^2) <= B^2.
Proof.
  intros p0 p1 H; rewrite <- (Rmult_1_l (B^2)), <- p1, <- rsum_scal_r; apply rsum_le; intros j Hj.
  apply Rmult_le_compat_l; [|apply pow_maj_Rabs]; auto.
Qed.

Lemma vnorm_sum_sq d p k q :
  (vnorm d (fun a => p a + k * q a))^2 = (vnorm d p)^2 + 2 * k * vdot d p q + k^2 * (vnorm d q)^2.
Proof.
  rewrite !vnorm_sq; unfold vdot; rewrite <- !rsum_scal, <- !rsum_plus; apply rsum_ext; intros; ring.
Qed.

(** ** Scores <x_i A + beta, x_j> *)

Definition query D (A : tokens) (beta : nat -> R) (x : tokens) i a := vmul D (x i) A a + beta a.
Definition bilinear_score D A beta (x : tokens) i j := vdot D (query D A beta x i) (x j).
Definition bilinear_dscore D A beta (x v : tokens) i j :=
  vdot D (vmul D (v i) A) (x j) + vdot D (query D A beta x i) (v j).

Lemma bilinear_score_derivative D A beta x v i j t :
  is_derive (fun u => bilinear_score D A beta (line x v u) i j) t
    (bilinear_dscore D A beta (line x v t) v i j).
Proof.
  assert (L : forall u a, query D A beta (line x v u) i a
    = vmul D (x i) A a + u * vmul D (v i) A a + beta a).
  { intros; unfold query, vmul; rewrite <- rsum_scal, <- rsum_plus; f_equal.
    apply rsum_ext; intros; unfold line; ring. }
  unfold bilinear_dscore, bilinear_score, vdot; rewrite <- rsum_plus.
  apply (is_derive_rsum D (fun a u => query D A beta (line x v u) i a * line x v u j a)); intros a _.
  apply (is_derive_ext (fun u => (vmul D (x i) A a + u * vmul D (v i) A a + beta a) * (x j a + u * v j a))).
  - intros; rewrite L; reflexivity.
  - rewrite L; unfold line; auto_derive; [trivial|ring].
Qed.

Definition ball n D r (x : tokens) := forall i, (i < n)%nat -> vnorm D (x i) <= r.

Lemma ball_convex n D r x y t :
  ball n D r x -> ball n D r y -> 0 <= t <= 1 -> ball n D r (line y (tsub x y) t).
Proof.
  intros X Y T i Hi; specialize (X i Hi); specialize (Y i Hi).
  replace (line y (tsub x y) t i) with (fun a => t * x i a + (1 - t) * y i a)
    by (extensionality a; unfold line, tsub; ring).
  eapply Rle_trans; [apply vnorm_plus|]; rewrite !vnorm_scal, !Rabs_pos_eq by lra; nra.
Qed.

Definition nonempty_rows n (see : mask) := forall i, (i < n)%nat -> exists j, (j < n)%nat /\ see i j = true.

(** sigma bounds the column sums of P on the ball. *)
Definition columns_le n D r see score sigma :=
  forall x j, ball n D r x -> (j < n)%nat -> rsum n (fun i => P n see score x i j) <= sigma.

(** |A|_2 <= a and |beta|_2 <= b, so that g = a r + b bounds |x_i A + beta|_2. *)
Section Ball.
Variables (n D : nat) (see : mask) (A : tokens) (beta : nat -> R) (r a b : R).
Hypothesis row : nonempty_rows n see.
Hypothesis r0 : 0 <= r.
Hypothesis a0 : 0 <= a.
Hypothesis HA : opnorm_le D D A a.
Hypothesis Hbeta : vnorm D beta <= b.
Let score := bilinear_score D A beta.
Let weights := P n see score.
Let g := a * r + b.

Lemma query_le x i : ball n D r x -> (i < n)%nat -> vnorm D (query D A beta x i) <= g.
Proof.
  intros Hx Hi; eapply Rle_trans; [apply vnorm_plus|]; apply Rplus_le_compat; [|exact Hbeta].
  eapply Rle_trans; [apply HA|]; apply Rmult_le_compat_l; auto.
Qed.

(** Row i of J v, by Cauchy-Schwarz over the tokens j with weights P_ij.  The vectors
    w + <w, x_j - m_i> g_i have the mean square |w|^2 + var <w, x_j> |g_i|^2. *)
Lemma jvp_le x v i w rho :
  ball n D r x -> (i < n)%nat ->
  0 <= rho -> rsum n (fun j => weights x i j * (vnorm D (v j))^2) <= rho^2 ->
  vdot D w (jvp n see score (bilinear_dscore D A beta) x v i) <=
  (sqrt (1 + r^2 * g^2) * rho + a * r^2 * vnorm D (v i)) * vnorm D w.
Proof.
  intros Hx Hi rho0 Hrho; assert (Q := query_le x i Hx Hi); set (q := query D A beta x i) in *.
  assert (P0 : forall j, (j < n)%nat -> 0 <= weights x i j) by (intros; apply P_ge0; auto).
  assert (P1 : rsum n (weights x i) = 1) by (apply P_sum; auto).
  assert (W0 := vnorm_ge0 D w); assert (V0 := vnorm_ge0 D (v i)).
  pose (f j := vdot D w (x j)); pose (m := rsum n (fun j => weights x i j * f j)).
  pose (psi j a := w a + (f j - m) * q a).
  assert (M : vdot D w (attention n see score x i) = m).
  { unfold attention; rewrite vdot_comm, (vdot_rsum D n (fun j a => weights x i j * x j a)).
    apply rsum_ext; intros; rewrite vdot_scal, vdot_comm; reflexivity. }
  assert (V : rsum n (fun j => weights x i j * (f j - m)^2) <= (r * vnorm D w)^2).
  { eapply Rle_trans; [apply (variance_le n (weights x i) f 0 P1)|].
    apply mean_square_le; auto; intros j Hj; rewrite Rminus_0_r, Rmult_comm.
    eapply Rle_trans; [apply vdot_le|]; apply Rmult_le_compat_l; auto. }
  rewrite vdot_jvp, M.
  apply Rle_trans with (rsum n (fun j => weights x i j * (vnorm D (psi j) * vnorm D (v j)))
    + rsum n (fun j => weights x i j * ((f j - m) * vdot D (vmul D (v i) A) (x j)))).
  { rewrite <- rsum_plus; apply rsum_le; intros j Hj; rewrite <- Rmult_plus_distr_l.
    apply Rmult_le_compat_l; [auto|]; generalize (vdot_le_r D (psi j) (v j)).
    unfold psi at 1; rewrite vdot_plus, vdot_scal; unfold bilinear_dscore; fold q (f j); lra. }
  apply Rle_trans with
    (vnorm D w * sqrt (1 + r^2 * g^2) * rho + r * vnorm D w * (a * vnorm D (v i) * r)); [|lra].
  apply Rplus_le_compat; apply mean_product_le; auto using sqrt_pos, Rmult_le_pos.
  - rewrite Rpow_mult_distr, pow2_sqrt by nra.
    rewrite (rsum_ext n _ (fun j => (vnorm D w)^2 * weights x i j + 2 * vdot D w q
      * (weights x i j * f j - m * weights x i j) + (vnorm D q)^2 * (weights x i j * (f j - m)^2)))
      by (intros; unfold psi; rewrite vnorm_sum_sq; ring).
    rewrite !rsum_plus, !rsum_scal, rsum_minus, rsum_scal, P1; fold m.
    assert (Q2 : (vnorm D q)^2 <= g^2) by (apply pow_incr; split; [apply vnorm_ge0|exact Q]).
    generalize (Rmult_le_compat_l _ _ _ (pow2_ge_0 (vnorm D q)) V)
      (Rmult_le_compat_r _ _ _ (pow2_ge_0 (r * vnorm D w)) Q2); lra.
  - apply mean_square_le; auto; intros j Hj.
    eapply Rle_trans; [apply vdot_le|]; apply Rmult_le_compat; auto using vnorm_ge0.
Qed.

(** In the 2-norm, attention on the ball has the constant sqrt(sigma (1 + r^2 g^2)) + a r^2. *)
Theorem dot_ball_2 sigma :
  columns_le n D r see score sigma ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D) (attention n see score)
    (sqrt (sigma * (1 + r^2 * g^2)) + a * r^2).
Proof.
  intros Hs; set (B := sqrt (1 + r^2 * g^2)); assert (B0 : 0 <= B) by apply sqrt_pos.
  assert (R2 := pow2_ge_0 r); assert (K0 := sqrt_pos (sigma * (1 + r^2 * g^2))).
  apply (lipschitz_2 n D see score row (bilinear_dscore D A beta));
    [apply bilinear_score_derivative|apply ball_convex|nra|].
  intros x v w Hx; assert (v0 := norm_2_ge0 n D v); assert (w0 := norm_2_ge0 n D w).
  destruct (Nat.eq_0_gt_0_cases n) as [N0|N0]; [rewrite N0 at 1; repeat apply Rmult_le_pos; nra|].
  assert (P0 : forall i j, (i < n)%nat -> 0 <= weights x i j) by (intros; apply P_ge0; auto).
  assert (s0 := Rle_trans _ _ _ (rsum_ge0 n _ (fun i => P0 i 0%nat)) (Hs x 0%nat Hx N0)).
  assert (S0 := sqrt_pos sigma); rewrite sqrt_mult by nra; fold B.
  pose (rho i := sqrt (rsum n (fun j => weights x i j * (vnorm D (v j))^2))).
  assert (E2 : forall i, (i < n)%nat -> (rho i)^2 = rsum n (fun j => weights x i j * (vnorm D (v j))^2))
    by (intros; apply pow2_sqrt, rsum_ge0; intros; apply Rmult_le_pos; auto; apply pow2_ge_0).
  assert (E : vnorm n rho <= sqrt sigma * norm_2 n D v).
  { apply sq_le_le; [nra|]; rewrite Rpow_mult_distr, pow2_sqrt, vnorm_sq, vdot_sq, norm_2_sq by auto.
    rewrite <- rsum_scal, (rsum_ext n _ _ E2), rsum_swap; apply rsum_le; intros j Hj.
    rewrite rsum_scal_r; apply Rmult_le_compat_r; [apply pow2_ge_0|apply Hs; auto]. }
  pose (V i := vnorm D (v i)); pose (O i := vnorm D (w i)).
  apply Rle_trans with (B * vdot n rho O + a * r^2 * vdot n V O).
  - rewrite <- !vdot_scal, <- vdot_plus; apply rsum_le; intros i Hi.
    apply jvp_le; auto; [apply sqrt_pos|rewrite E2; auto; lra].
  - assert (H : vdot n rho O <= sqrt sigma * norm_2 n D v * norm_2 n D w)
      by (eapply Rle_trans; [apply vdot_le_r|apply Rmult_le_compat_r; auto]).
    generalize (Rmult_le_compat_l B _ _ B0 H)
      (Rmult_le_compat_l (a * r^2) _ _ ltac:(nra) (vdot_le_r n V O)).
    change (vnorm n V) with (norm_2 n D v); change (vnorm n O) with (norm_2 n D w); lra.
Qed.

(** In the largest 2-norm of a token it has one that does not depend on the number of tokens. *)
Theorem dot_ball_token_max :
  lipschitz_on (ball n D r) (token_max n D) (token_max n D) (attention n see score)
    (sqrt (1 + r^2 * g^2) + a * r^2).
Proof.
  assert (B0 := sqrt_pos (1 + r^2 * g^2)); assert (R2 := pow2_ge_0 r).
  apply (lipschitz_token_max n D see score row (bilinear_dscore D A beta));
    [apply bilinear_score_derivative|apply ball_convex|nra|].
  intros x v i w Hx Hi; assert (M0 : 0 <= token_max n D v) by apply rmax_ge0.
  assert (M : forall j, (j < n)%nat -> vnorm D (v j) <= token_max n D v) by apply vnorm_le_token_max.
  eapply Rle_trans; [apply (jvp_le x v i w (token_max n D v)); auto|].
  - apply mean_square_le; [intros; apply P_ge0|apply P_sum|]; auto.
    intros; rewrite Rabs_pos_eq by apply vnorm_ge0; auto.
  - apply Rmult_le_compat_r; [apply vnorm_ge0|].
    generalize (Rmult_le_compat_l (a * r^2) _ _ ltac:(nra) (M i Hi)); lra.
Qed.

(** ** Column sums of P *)

(** A column of P sums to at most the number of tokens. *)
Theorem columns_le_n : columns_le n D r see score (INR n).
Proof.
  intros x j _ Hj; rewrite <- (Rmult_1_r (INR n)), <- rsum_const; apply rsum_le; intros; apply P_le1; auto.
Qed.

(** With a mask, to at most the number of tokens that see it. *)
Theorem columns_le_seeing c :
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j) <= c) -> columns_le n D r see score c.
Proof.
  intros H x j _ Hj; eapply Rle_trans; [|apply (H j Hj)]; apply rsum_le; intros; apply P_le_vis; auto.
Qed.

(** Scores between - r g and r g give P_ij <= e^(2 r g) / the number of tokens that i sees. *)
Theorem columns_le_exp S :
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j / rsum n (vis see i)) <= S) ->
  columns_le n D r see score (exp (2 * r * g) * S).
Proof.
  intros HS x j Hx Hj; apply Rle_trans with
    (exp (2 * r * g) * rsum n (fun i => vis see i j / rsum n (vis see i)));
    [|apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|auto]].
  rewrite <- rsum_scal; apply rsum_le; intros i Hi.
  set (E := exp (r * g)); assert (E0 : 0 < E) by apply exp_pos.
  assert (T0 := total_pos n see score row x i Hi); assert (V0 := vis_cases see i).
  assert (X : forall l, (l < n)%nat -> 1 <= E * exp (score x i l) /\ exp (score x i l) <= E).
  { intros l Hl; assert (B : Rabs (score x i l) <= r * g).
    { eapply Rle_trans; [apply vdot_le|]; rewrite Rmult_comm.
      apply Rmult_le_compat; auto using vnorm_ge0, query_le. }
    apply Rabs_le_between in B; unfold E; rewrite <- exp_plus, <- exp_0; split; apply exp_le; lra. }
  assert (V : 0 < rsum n (vis see i)).
  { destruct (row i Hi) as [l [Hl El]]; apply Rlt_le_trans with (vis see i l); [unfold vis; rewrite El; lra|].
    apply rsum_ge_term; auto; intros k _; destruct (V0 k); lra. }
  assert (T : rsum n (vis see i) <= E * total n see score x i).
  { unfold total; rewrite <- rsum_scal; apply rsum_le; intros l Hl; unfold weight.
    destruct (X l Hl), (V0 l) as [-> | ->]; lra. }
  unfold P; apply Rle_div_l; [exact T0|].
  replace (exp (2 * r * g) * _ * _)
    with (vis see i j * E * (E * total n see score x i / rsum n (vis see i)))
    by (replace (2 * r * g) with (r * g + r * g) by ring; rewrite exp_plus; unfold E; field; lra).
  assert (1 <= E * total n see score x i / rsum n (vis see i)) by (apply Rle_div_r; lra).
  unfold weight; destruct (X j Hj), (V0 j) as [-> | ->]; nra.
Qed.
End Ball.

(** The sum of 1 / (the number of tokens that i sees) over the i that see j: 1 without a mask, and at most
    1 + 1/2 + ... + 1/n with a causal one. *)
Definition harmonic n := rsum n (fun i => / INR (S i)).

Lemma mask_column_all n j :
  (j < n)%nat -> rsum n (fun i => vis all_tokens i j / rsum n (vis all_tokens i)) <= 1.
Proof.
  intros Hj; assert (0 < INR n) by (apply lt_0_INR; lia).
  unfold vis, all_tokens; rewrite !rsum_const; apply Req_le; field; lra.
Qed.

Lemma mask_column_causal n j : rsum n (fun i => vis causal i j / rsum n (vis causal i)) <= harmonic n.
Proof.
  apply rsum_le; intros i Hi; assert (0 < / INR (S i)) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  replace (rsum n (vis causal i)) with (INR (S i)).
  - unfold Rdiv; destruct (vis_cases causal i j) as [-> | ->]; lra.
  - replace n with (S i + (n - S i))%nat by lia; rewrite rsum_app.
    rewrite (rsum_ext (S i) _ (fun _ => 1)), (rsum_ext (n - S i) _ (fun _ => 0)), !rsum_const; [ring| |];
      intros l Hl; unfold vis, causal; destruct (Nat.leb_spec0 (S i + l) i), (Nat.leb_spec0 l i);
      reflexivity || lia.
Qed.

(** ** Heads *)

(** What is added to all scores of a row does not change P. *)
Lemma P_row_constant n see score score' c :
  (forall x i j, score x i j = score' x i j + c x i) -> P n see score = P n see score'.
Proof.
  intros H; extensionality x; extensionality i; extensionality j; assert (c0 := exp_pos (c x i)).
  assert (E : forall l, weight see score x i l = weight see score' x i l * exp (c x i))
    by (intros; unfold weight; rewrite H, exp_plus; ring).
  unfold P, total, Rdiv; rewrite E, (rsum_ext n _ _ (fun l _ => E l)), rsum_scal_r, Rinv_mult.
  set (T := / rsum _ _); field; lra.
Qed.

(** A = s W_Q W_K^T and beta = s b_Q W_K^T, |A|_2 <= a, |beta|_2 <= b, g = a r + b, |W|_2 <= v. *)
Section Head.
Variables (n D D' d : nat) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R) (W : tokens) (r a b v : R).
Let A := scale s (rmul d (transpose W_K) W_Q).
Let beta c := s * vmul d b_Q (transpose W_K) c.
Let score := dot_score D d s W_Q W_K b_Q b_K.
Let head see x := rmul D W (attention n see score x).
Let g := a * r + b.

(** s <x_i W_Q + b_Q, x_j W_K + b_K> = <x_i A + beta, x_j> up to a constant of row i. *)
Lemma P_bilinear see : P n see score = P n see (bilinear_score D A beta).
Proof.
  apply (P_row_constant n see _ _
    (fun x i => s * vdot d (fun c => vmul D (x i) W_Q c + b_Q c) b_K)); intros x i j.
  unfold score, dot_score, bilinear_score; set (q := fun c => _).
  replace (vdot D _ (x j)) with (s * vdot d q (vmul D (x j) W_K)).
  - unfold vdot; rewrite <- Rmult_plus_distr_l, <- rsum_plus; f_equal; apply rsum_ext; intros; ring.
  - rewrite (vdot_comm d), vdot_vmul, vdot_comm, <- vdot_scal; apply rsum_ext; intros e _; f_equal.
    unfold query, beta, A, q, scale, rmul, vmul, transpose; rewrite <- !rsum_scal.
    rewrite (rsum_ext D _ (fun k => rsum d (fun c => s * (x i k * W_Q k c * W_K e c))))
      by (intros; rewrite <- !rsum_scal; apply rsum_ext; intros; ring).
    rewrite rsum_swap, <- rsum_plus; apply rsum_ext; intros; rewrite rsum_scal, rsum_scal_r; ring.
Qed.

Hypothesis r0 : 0 <= r.
Hypothesis a0 : 0 <= a.
Hypothesis v0 : 0 <= v.
Hypothesis HA : opnorm_le D D A a.
Hypothesis Hbeta : vnorm D beta <= b.
Hypothesis HW : opnorm_le D D' W v.

(** A head with any mask, in the 2-norm. *)
Theorem dot_ball_head_2 see sigma :
  nonempty_rows n see -> columns_le n D r see score sigma ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt (sigma * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  unfold head, columns_le, attention; rewrite P_bilinear; intros row Hs.
  apply lipschitz_comp with (N' := norm_2 n D); [auto|apply dot_ball_2|apply rmul_lipschitz_2]; auto.
Qed.

(** A head with any mask, in the largest 2-norm of a token. *)
Theorem dot_ball_head_token_max see :
  nonempty_rows n see ->
  lipschitz_on (ball n D r) (token_max n D) (token_max n D') (head see)
    (v * (sqrt (1 + r^2 * g^2) + a * r^2)).
Proof.
  unfold head, attention; rewrite P_bilinear; intros row; apply lipschitz_comp with (N' := token_max n D);
    [auto|apply dot_ball_token_max|apply rmul_lipschitz_token_max]; auto.
Qed.

Lemma dot_ball_mask see S :
  nonempty_rows n see ->
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j / rsum n (vis see i)) <= S) ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g) * S) * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  intros row HS; apply dot_ball_head_2; auto; unfold columns_le; rewrite P_bilinear.
  intros x j Hx Hj; apply Rmin_glb; [apply columns_le_n with (2 := Hx)|apply columns_le_exp]; auto.
Qed.

(** Without a mask, in the 2-norm. *)
Theorem dot_ball_unmasked :
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g)) * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  rewrite <- (Rmult_1_r (exp _)); apply dot_ball_mask; [intros i Hi; exists i; auto|apply mask_column_all].
Qed.

(** With a causal mask, in the 2-norm. *)
Theorem dot_ball_causal :
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head causal)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g) * harmonic n) * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  apply dot_ball_mask; [|intros; apply mask_column_causal].
  intros i Hi; exists i; split; [auto|apply Nat.leb_refl].
Qed.
End Head.

Lemma sqrt_Rmin x y : 0 <= y -> sqrt (Rmin x (y^2)) = Rmin (sqrt x) y.
Proof.
  intros y0; rewrite <- (sqrt_pow2 y y0) at 2; unfold Rmin.
  destruct (Rle_dec x (y^2)) as [H|H], (Rle_dec (sqrt x) (sqrt (y^2))) as [G|G]; auto.
  - elim G; apply sqrt_le_1_alt, H.
  - elim H; apply sqrt_le_0; auto; nra.
Qed.

(** ** Without biases *)

Section Plain.
Variables (n D D' d : nat) (s : R) (W_Q W_K W : tokens) (r a v : R).
Let score (x : tokens) i j := s * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K).
Let head see x := rmul D W (attention n see score x).
Hypothesis r0 : 0 <= r.
Hypothesis a0 : 0 <= a.
Hypothesis v0 : 0 <= v.
Hypothesis HA : opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a.
Hypothesis HW : opnorm_le D D' W v.

Lemma no_bias : vnorm D (fun c => s * vmul d (fun _ => 0) (transpose W_K) c) <= 0.
Proof.
  replace (fun c => _) with (fun _ : nat => 0 * 0); [rewrite vnorm_scal, Rabs_R0; lra|].
  extensionality c; unfold vmul; rewrite (rsum_ext d _ (fun _ => 0)), rsum_0; intros; ring.
Qed.

(** v (min(sqrt n, e^(a r^2)) sqrt(1 + a^2 r^4) + a r^2) without a mask, a >= |s W_Q W_K^T|_2. *)
Theorem dot_ball : lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
  (v * (Rmin (sqrt (INR n)) (exp (a * r^2)) * sqrt (1 + a^2 * r^4) + a * r^2)).
Proof.
  assert (e0 := exp_pos (a * r^2)); assert (n0 := pos_INR n).
  assert (M0 : 0 <= Rmin (INR n) (exp (a * r^2) ^ 2)) by (apply Rmin_glb; nra).
  replace (Rmin (sqrt (INR n)) _ * _)
    with (sqrt (Rmin (INR n) (exp (2 * r * (a * r + 0))) * (1 + r^2 * (a * r + 0)^2))).
  - unfold head, score; rewrite <- dot_score_plain; apply dot_ball_unmasked; auto using no_bias.
  - replace (exp (2 * r * (a * r + 0))) with ((exp (a * r^2))^2)
      by (rewrite <- Rsqr_pow2; unfold Rsqr; rewrite <- exp_plus; f_equal; ring).
    rewrite sqrt_mult, sqrt_Rmin by nra; f_equal; f_equal; ring.
Qed.

(** The bound of Castin, Ablin and Peyre (ICML 2024) for n tokens, with any mask:
    sqrt 3 v (a^2 r^4 (4n + 1) + n)^(1/2). *)
Theorem castin_ball see : nonempty_rows n see ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt 3 * sqrt (a^2 * r^4 * (4 * INR n + 1) + INR n))).
Proof.
  intros row; assert (L := dot_ball_head_2 n D D' d s W_Q W_K (fun _ => 0) (fun _ => 0) W r a 0 v
    r0 a0 v0 HA no_bias HW see (INR n) row); rewrite dot_score_plain in L.
  set (N := INR n) in *; assert (N0 : 0 <= N) by apply pos_INR; set (x := a * r^2).
  assert (X0 : 0 <= x) by (apply Rmult_le_pos; [auto|apply pow2_ge_0]).
  eapply lipschitz_le; [apply norm_2_ge0| |apply L].
  - apply Rmult_le_compat_l; [auto|].
    replace (r^2 * (a * r + 0)^2) with (x^2) by (unfold x; ring).
    replace (a^2 * r^4) with (x^2) by (unfold x; ring); fold x.
    rewrite <- !sqrt_mult by nra; apply sq_le_le; [apply sqrt_pos|rewrite pow2_sqrt by nra].
    assert (Q : (sqrt (N * (1 + x^2)))^2 = N * (1 + x^2)) by (apply pow2_sqrt; nra).
    generalize (pow2_ge_0 (sqrt (N * (1 + x^2)) - x)); nra.
  - intros y j Hy Hj; unfold N; rewrite <- (Rmult_1_r (INR n)), <- rsum_const; apply rsum_le.
    intros; apply P_le1; auto.
Qed.

(** Theirs for any number of tokens, without a mask: v (1 + 3 a r^2) e^(2 a r^2). *)
Theorem castin_mean_field : lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
  (v * ((1 + 3 * (a * r^2)) * exp (2 * (a * r^2)))).
Proof.
  set (x := a * r^2); assert (X0 : 0 <= x) by (apply Rmult_le_pos; [auto|apply pow2_ge_0]).
  eapply lipschitz_le; [apply norm_2_ge0| |apply dot_ball]; apply Rmult_le_compat_l; [auto|].
  replace (a^2 * r^4) with (x^2) by (unfold x; ring); fold x.
  assert (S : sqrt (1 + x^2) <= 1 + x) by (apply sq_le_le; [lra|rewrite pow2_sqrt by nra; nra]).
  assert (E := exp_ineq1_le x); set (e := exp x) in *.
  replace (exp (2 * x)) with (e * e) by (unfold e; rewrite <- exp_plus; f_equal; ring).
  assert (M : Rmin (sqrt (INR n)) e <= e) by apply Rmin_r.
  assert (e * (1 + x) <= e * e) by (apply Rmult_le_compat_l; lra).
  assert (x * 1 <= x * (e * e)) by (apply Rmult_le_compat_l; nra).
  apply Rle_trans with (e * (1 + x) + x); [|lra].
  apply Rplus_le_compat_r, Rmult_le_compat; auto using sqrt_pos; apply Rmin_glb; [apply sqrt_pos|lra].
Qed.
End Plain.
