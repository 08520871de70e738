(** Dot-product attention is Lipschitz on a ball: on inputs whose tokens have 2-norm at most r. *)
From Lipsa Require Import Sums Tokens Core Kernel DotProduct.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [apply Rlt_le, exp_increasing, H|apply Rle_refl]. Qed.

Lemma mean_square_le n p f B :
  (forall j, (j < n)%nat -> 0 <= p j) -> rsum n p = 1 -> (forall j, (j < n)%nat -> Rabs (f j) <= B) ->
  rsum n (fun j => p j * (f j)^2) <= B^2.
Proof.
  intros p0 p1 H; rewrite <- (Rmult_1_l (B^2)), <- p1, <- rsum_scal_r; apply rsum_le; intros.
  apply Rmult_le_compat_l; [|apply pow_maj_Rabs]; auto.
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
  assert (L : forall u a, query D A beta (line x v u) i a = query D A beta x i a + u * vmul D (v i) A a).
  { intros; unfold query; replace (vmul D (line x v u i) A a) with (vmul D (x i) A a + u * vmul D (v i) A a);
      [ring|unfold vmul, line; rewrite <- rsum_scal, <- rsum_plus; apply rsum_ext; intros; ring]. }
  unfold bilinear_dscore, bilinear_score, vdot; rewrite <- rsum_plus.
  apply (is_derive_rsum D (fun a u => query D A beta (line x v u) i a * line x v u j a)); intros a _.
  apply (is_derive_ext (fun u => (query D A beta x i a + u * vmul D (v i) A a) * (x j a + u * v j a))).
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

(** sigma bounds the column sums of P on the ball. *)
Definition columns_le n D r see score sigma :=
  forall x j, ball n D r x -> (j < n)%nat -> rsum n (fun i => P n see score x i j) <= sigma.

(** A column of P sums to at most the number of tokens, *)
Theorem columns_le_n n D r see score : nonempty_rows n see -> columns_le n D r see score (INR n).
Proof.
  intros row x j _ Hj; rewrite <- (Rmult_1_r (INR n)), <- rsum_const; apply rsum_le; intros; apply P_le1; auto.
Qed.

(** and with a mask, to at most the number of tokens that see it. *)
Theorem columns_le_seeing n D r see score c : nonempty_rows n see ->
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j) <= c) -> columns_le n D r see score c.
Proof.
  intros row H x j _ Hj; eapply Rle_trans; [|apply (H j Hj)]; apply rsum_le; intros; apply P_le_vis; auto.
Qed.

(** |A|_2 <= a and |beta|_2 <= b, so that g = a r + b bounds |x_i A + beta|_2. *)
Section Ball.
Variables (n D : nat) (see : mask) (A : tokens) (beta : nat -> R) (r a b : R).
Hypotheses (row : nonempty_rows n see) (a0 : 0 <= a) (HA : opnorm_le D D A a) (Hbeta : vnorm D beta <= b).
Let score := bilinear_score D A beta.
Local Notation weights := (P n see score).
Let g := a * r + b.
Let J := jvp n see score (bilinear_dscore D A beta).
Local Notation dev := (dev n see score).

Lemma weights_sum x i : (i < n)%nat -> rsum n (weights x i) = 1.
Proof. apply P_sum, row. Qed.

Lemma query_le x i : ball n D r x -> (i < n)%nat -> vnorm D (query D A beta x i) <= g.
Proof.
  intros Hx Hi; eapply Rle_trans; [apply vnorm_plus|]; apply Rplus_le_compat; [|exact Hbeta].
  eapply Rle_trans; [apply HA|]; apply Rmult_le_compat_l; auto.
Qed.

Lemma scatter_ball x i : ball n D r x -> (i < n)%nat ->
  rsum n (fun j => weights x i j * (vnorm D (dev x i j))^2) <= r^2.
Proof.
  intros Hx Hi; eapply Rle_trans with (rsum n (fun j => weights x i j * (vnorm D (x j))^2)).
  - assert (S := scatter n D see score row x i (fun _ => 0) Hi).
    rewrite (rsum_ext n (fun j => _ * (vnorm D (fun a => x j a - 0))^2)
      (fun j => weights x i j * (vnorm D (x j))^2)) in S
      by (intros; replace (fun a => x j a - 0) with (x j); [reflexivity|extensionality e; ring]).
    rewrite <- S; generalize (pow2_ge_0 (vnorm D (fun a => 0 - attention n see score x i a))); lra.
  - apply mean_square_le; auto using weights_sum with pos; intros; rewrite Rabs_pos_eq; auto with pos.
Qed.

(** w + <w, x_j - m_i> g_i for the query g_i of token i: the cross term of its mean square is 0. *)
Definition psi (x : tokens) i w j a := w a + vdot D w (dev x i j) * query D A beta x i a.

Lemma psi_le x i w : ball n D r x -> (i < n)%nat ->
  rsum n (fun j => weights x i j * (vnorm D (psi x i w j))^2) <= (1 + r^2 * g^2) * (vnorm D w)^2.
Proof.
  intros Hx Hi; pose (q := query D A beta x i).
  rewrite (rsum_ext n _ (fun j => (vnorm D w)^2 * weights x i j + 2 * vdot D w q * (weights x i j
    * vdot D w (dev x i j)) + (vnorm D q)^2 * (weights x i j * (vdot D w (dev x i j))^2))).
  - rewrite !rsum_plus, !rsum_scal, (centred n D see score row), weights_sum by auto.
    assert (V := covariance_le n D see score row x i w _ Hi (scatter_ball x i Hx Hi)).
    apply (Rmult_le_compat_l _ _ _ (pow2_ge_0 (vnorm D q))) in V.
    assert (Q : (vnorm D q)^2 <= g^2) by (apply pow_incr; split; [apply vnorm_ge0|apply query_le; auto]).
    apply (Rmult_le_compat_r (r^2 * (vnorm D w)^2)) in Q; [lra|auto with pos].
  - intros j _; unfold psi; fold q; rewrite !vnorm_sq, vdot_plus, vdot_scal.
    rewrite !(vdot_comm D _ (fun a => w a + _)), !vdot_plus, !vdot_scal, (vdot_comm D q w); ring.
Qed.

(** Row i of J v. *)
Lemma jvp_le x v i w : ball n D r x -> (i < n)%nat ->
  vdot D w (J x v i) <= rsum n (fun j => weights x i j * (vnorm D (psi x i w j) * vnorm D (v j)))
    + a * r^2 * (vnorm D w * vnorm D (v i)).
Proof.
  intros Hx Hi; set (S := rsum n (fun j => weights x i j * (vnorm D (psi x i w j) * vnorm D (v j)))).
  apply Rle_trans with
    (S + rsum n (fun j => weights x i j * (vdot D w (dev x i j) * vdot D (vmul D (v i) A) (x j)))).
  - unfold J, S; rewrite vdot_jvp, <- rsum_plus; apply rsum_le; intros j Hj.
    rewrite <- vdot_dev, <- Rmult_plus_distr_l; apply Rmult_le_compat_l; [auto with pos|].
    generalize (vdot_le_r D (psi x i w j) (v j)); unfold psi at 1, bilinear_dscore.
    rewrite vdot_plus, vdot_scal; lra.
  - apply Rplus_le_compat_l, (mean_product_le n _ _ _ (r^2 * (vnorm D w)^2) ((a * vnorm D (v i) * r)^2));
      auto using scatter_ball, covariance_le with pos.
    apply mean_square_le; auto using weights_sum with pos; intros j Hj.
    eapply Rle_trans; [apply vdot_le|]; apply Rmult_le_compat; auto with pos.
Qed.

(** In the 2-norm, attention on the ball has the constant sqrt(sigma (1 + r^2 g^2)) + a r^2. *)
Theorem dot_ball_2 sigma : columns_le n D r see score sigma ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D) (attention n see score)
    (sqrt (sigma * (1 + r^2 * g^2)) + a * r^2).
Proof.
  intros Hs; apply (lipschitz_2 n D see score row (bilinear_dscore D A beta));
    [apply bilinear_score_derivative|apply ball_convex|auto with pos|].
  intros x v w Hx; eapply Rle_trans; [apply rsum_le; intros; apply jvp_le; auto|].
  rewrite rsum_plus, rsum_scal; assert (X := vdot_le_r n (fun i => vnorm D (w i)) (fun i => vnorm D (v i))).
  apply (Rmult_le_compat_l (a * r^2)) in X; [|auto with pos].
  enough (Y : rsum n (fun i => rsum n (fun j => weights x i j * (vnorm D (psi x i (w i) j) * vnorm D (v j))))
    <= sqrt ((1 + r^2 * g^2) * sigma) * norm_2 n D w * norm_2 n D v)
    by (rewrite (Rmult_comm sigma); unfold norm_2, vdot in *; lra).
  apply cauchy_schwarz2; auto with pos.
  - rewrite norm_2_sq, <- rsum_scal; apply rsum_le; intros; apply psi_le; auto.
  - rewrite rsum_swap, norm_2_sq, <- rsum_scal; apply rsum_le; intros; rewrite rsum_scal_r.
    apply Rmult_le_compat_r, Hs; auto with pos.
Qed.

(** In the largest 2-norm of a token it has one that does not depend on the number of tokens. *)
Theorem dot_ball_token_max :
  lipschitz_on (ball n D r) (token_max n D) (token_max n D) (attention n see score)
    (sqrt (1 + r^2 * g^2) + a * r^2).
Proof.
  apply (lipschitz_token_max n D see score row (bilinear_dscore D A beta));
    [apply bilinear_score_derivative|apply ball_convex|auto with pos|].
  intros x v i w Hx Hi; eapply Rle_trans; [apply jvp_le; auto|].
  assert (M := vnorm_le_token_max n D v); set (t := token_max n D v) in *.
  assert (t0 : 0 <= t) by apply rmax_ge0.
  replace (_ * t * _) with (sqrt (1 + r^2 * g^2) * t * vnorm D w + a * r^2 * (vnorm D w * t)) by ring.
  apply Rplus_le_compat; [|apply Rmult_le_compat_l, Rmult_le_compat_l; auto with pos].
  eapply mean_product_le; [..|apply psi_le|apply (mean_square_le n _ _ t)|]; auto using weights_sum with pos.
  - intros; rewrite Rabs_pos_eq; auto with pos.
  - rewrite !Rpow_mult_distr, pow2_sqrt by auto with pos; lra.
Qed.

(** Scores between - r g and r g give P_ij <= e^(2 r g) / the number of tokens that i sees. *)
Theorem columns_le_exp S :
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j / rsum n (vis see i)) <= S) ->
  columns_le n D r see score (exp (2 * r * g) * S).
Proof.
  intros HS x j Hx Hj; eapply Rle_trans; [|apply Rmult_le_compat_l, (HS j Hj); apply Rlt_le, exp_pos].
  rewrite <- rsum_scal; apply rsum_le; intros i Hi; set (E := exp (- (r * g))).
  assert (X : forall l, (l < n)%nat -> E <= exp (score x i l) <= exp (r * g)).
  { intros l Hl; assert (B : Rabs (score x i l) <= r * g).
    { eapply Rle_trans; [apply vdot_le|]; rewrite Rmult_comm.
      apply Rmult_le_compat; auto using query_le with pos. }
    apply Rabs_le_between in B; split; apply exp_le; lra. }
  assert (V : 0 < rsum n (vis see i)).
  { destruct (row i Hi) as [l [Hl El]]; apply Rlt_le_trans with (vis see i l); [unfold vis; rewrite El; lra|].
    apply rsum_ge_term; auto with pos. }
  assert (T : rsum n (vis see i) * E <= total n see score x i).
  { rewrite <- rsum_scal_r; apply rsum_le; intros; apply Rmult_le_compat_l, X; auto with pos. }
  replace (exp (2 * r * g) * _) with (vis see i j * exp (r * g) * / (rsum n (vis see i) * E)).
  - assert (0 < rsum n (vis see i) * E) by (apply Rmult_lt_0_compat; [exact V|apply exp_pos]).
    apply Rmult_le_compat; [apply weight_ge0|apply Rlt_le, Rinv_0_lt_compat; lra|..].
    + apply Rmult_le_compat_l; [apply vis_ge0|apply X, Hj].
    + apply Rinv_le_contravar; auto.
  - unfold E; rewrite Rinv_mult, exp_Ropp, Rinv_inv; replace (2 * r * g) with (r * g + r * g) by ring.
    rewrite exp_plus; unfold Rdiv; ring.
Qed.
End Ball.

(** The sum of 1 / (the number of tokens that i sees) over the i that see j: 1 without a mask, and at most
    1 + 1/2 + ... + 1/n with a causal one. *)
Definition harmonic n := rsum n (fun i => / INR (S i)).

Lemma mask_column_all n j : (j < n)%nat ->
  rsum n (fun i => vis all_tokens i j / rsum n (vis all_tokens i)) <= 1.
Proof.
  intros Hj; unfold vis, all_tokens; rewrite !rsum_const; apply Req_le; field; apply not_0_INR; lia.
Qed.

Lemma mask_column_causal n j : rsum n (fun i => vis causal i j / rsum n (vis causal i)) <= harmonic n.
Proof.
  apply rsum_le; intros i Hi; replace (rsum n (vis causal i)) with (INR (S i)).
  - rewrite <- (Rmult_1_l (/ _)); apply Rmult_le_compat_r; [|apply vis_le1].
    apply Rlt_le, Rinv_0_lt_compat, lt_0_INR; lia.
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
  unfold score, dot_score, bilinear_score; set (q := fun c => vmul D (x i) W_Q c + b_Q c).
  rewrite vdot_comm, vdot_plus, (vdot_comm d q b_K), vdot_vmul, Rmult_plus_distr_l; f_equal.
  rewrite (vdot_comm D (query _ _ _ _ _)), (Rmult_comm s); unfold vdot; rewrite <- rsum_scal_r.
  apply rsum_ext; intros e _; rewrite Rmult_assoc; f_equal.
  unfold query, beta, A, q, scale, rmul, vmul, transpose; rewrite Rmult_comm, <- !rsum_scal.
  rewrite (rsum_ext D _ (fun k => rsum d (fun c => s * (x i k * W_Q k c * W_K e c))))
    by (intros; rewrite <- !rsum_scal; apply rsum_ext; intros; ring).
  rewrite rsum_swap, <- rsum_plus; apply rsum_ext; intros; rewrite rsum_scal, rsum_scal_r; ring.
Qed.

Hypotheses (a0 : 0 <= a) (v0 : 0 <= v).
Hypotheses (HA : opnorm_le D D A a) (Hbeta : vnorm D beta <= b) (HW : opnorm_le D D' W v).

(** A head with any mask, in the 2-norm. *)
Theorem dot_ball_head_2 see sigma : nonempty_rows n see -> columns_le n D r see score sigma ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt (sigma * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  unfold head, columns_le, attention; rewrite P_bilinear; intros row Hs.
  apply lipschitz_comp with (N' := norm_2 n D); [auto|apply dot_ball_2|apply rmul_lipschitz_2]; auto.
Qed.

(** A head with any mask, in the largest 2-norm of a token. *)
Theorem dot_ball_head_token_max see : nonempty_rows n see ->
  lipschitz_on (ball n D r) (token_max n D) (token_max n D') (head see)
    (v * (sqrt (1 + r^2 * g^2) + a * r^2)).
Proof.
  unfold head, attention; rewrite P_bilinear; intros row; apply lipschitz_comp with (N' := token_max n D);
    [auto|apply dot_ball_token_max|apply rmul_lipschitz_token_max]; auto.
Qed.

(** With any mask in which at most c tokens see one, in the 2-norm. *)
Theorem dot_ball_seeing see c : nonempty_rows n see ->
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j) <= c) ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt (c * (1 + r^2 * g^2)) + a * r^2)).
Proof. intros row H; apply dot_ball_head_2, columns_le_seeing; auto. Qed.

Lemma dot_ball_mask see S : nonempty_rows n see ->
  (forall j, (j < n)%nat -> rsum n (fun i => vis see i j / rsum n (vis see i)) <= S) ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g) * S) * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  intros row HS; apply dot_ball_head_2; auto; intros x j Hx Hj.
  apply Rmin_glb; [apply (columns_le_n n D r see score row x)|rewrite P_bilinear; apply columns_le_exp]; auto.
Qed.

(** Without a mask, in the 2-norm. *)
Theorem dot_ball_unmasked :
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g)) * (1 + r^2 * g^2)) + a * r^2)).
Proof.
  rewrite <- (Rmult_1_r (exp _)); apply dot_ball_mask, mask_column_all; apply self_row, all_self.
Qed.

(** With a causal mask, in the 2-norm. *)
Theorem dot_ball_causal :
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head causal)
    (v * (sqrt (Rmin (INR n) (exp (2 * r * g) * harmonic n) * (1 + r^2 * g^2)) + a * r^2)).
Proof. apply dot_ball_mask; [apply self_row, causal_self|intros; apply mask_column_causal]. Qed.
End Head.

(** ** Without biases *)

Section Plain.
Variables (n D D' d : nat) (s : R) (W_Q W_K W : tokens) (r a v : R).
Let score (x : tokens) i j := s * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K).
Let head see x := rmul D W (attention n see score x).
Hypotheses (a0 : 0 <= a) (v0 : 0 <= v) (HW : opnorm_le D D' W v).
Hypothesis HA : opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a.

Lemma no_bias : vnorm D (fun c => s * vmul d (fun _ => 0) (transpose W_K) c) <= 0.
Proof.
  replace (fun c => _) with (fun _ : nat => 0 * 0); [rewrite vnorm_scal, Rabs_R0; lra|].
  extensionality c; unfold vmul; rewrite (rsum_ext d _ (fun _ => 0)), rsum_0; intros; ring.
Qed.

(** v (min(sqrt n, e^(a r^2)) sqrt(1 + a^2 r^4) + a r^2) without a mask, a >= |s W_Q W_K^T|_2. *)
Theorem dot_ball : lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
  (v * (Rmin (sqrt (INR n)) (exp (a * r^2)) * sqrt (1 + a^2 * r^4) + a * r^2)).
Proof.
  assert (L := dot_ball_unmasked n D D' d s W_Q W_K (fun _ => 0) (fun _ => 0) W r a 0 v
    a0 v0 HA no_bias HW); rewrite dot_score_plain in L.
  eapply lipschitz_le; [apply norm_2_ge0| |exact L]; apply Rmult_le_compat_l, Rplus_le_compat_r; [auto|].
  replace (1 + r^2 * (a * r + 0)^2) with (1 + a^2 * r^4) by ring.
  replace (exp (2 * r * (a * r + 0))) with ((exp (a * r^2))^2)
    by (rewrite <- Rsqr_pow2; unfold Rsqr; rewrite <- exp_plus; f_equal; ring).
  assert (e0 := exp_pos (a * r^2)); rewrite sqrt_mult_alt by (apply Rmin_glb; auto with pos).
  apply Rmult_le_compat_r, Rmin_glb; [apply sqrt_pos|apply sqrt_le_1_alt, Rmin_l|].
  rewrite <- (sqrt_pow2 (exp _)) at 2 by lra; apply sqrt_le_1_alt, Rmin_r.
Qed.

(** The bound of Castin, Ablin and Peyre (ICML 2024) for n tokens, with any mask:
    sqrt 3 v (a^2 r^4 (4n + 1) + n)^(1/2). *)
Theorem castin_ball see : nonempty_rows n see ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head see)
    (v * (sqrt 3 * sqrt (a^2 * r^4 * (4 * INR n + 1) + INR n))).
Proof.
  intros row; assert (L := dot_ball_head_2 n D D' d s W_Q W_K (fun _ => 0) (fun _ => 0) W r a 0 v
    a0 v0 HA no_bias HW see (INR n) row); rewrite dot_score_plain in L.
  set (N := INR n) in *; assert (N0 : 0 <= N) by apply pos_INR; set (x := a * r^2).
  assert (X0 : 0 <= x) by (unfold x; auto with pos).
  eapply lipschitz_le; [apply norm_2_ge0|apply Rmult_le_compat_l; [auto|]|apply L].
  - replace (r^2 * (a * r + 0)^2) with (x^2) by (unfold x; ring).
    replace (a^2 * r^4) with (x^2) by (unfold x; ring); fold x.
    rewrite <- sqrt_mult by nra; apply sq_le_le; [apply sqrt_pos|rewrite pow2_sqrt by nra].
    assert (Q : (sqrt (N * (1 + x^2)))^2 = N * (1 + x^2)) by (apply pow2_sqrt; nra).
    generalize (pow2_ge_0 (sqrt (N * (1 + x^2)) - x)); nra.
  - apply columns_le_n, row.
Qed.

(** Theirs for any number of tokens, without a mask: v (1 + 3 a r^2) e^(2 a r^2). *)
Theorem castin_mean_field : lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D') (head all_tokens)
  (v * ((1 + 3 * (a * r^2)) * exp (2 * (a * r^2)))).
Proof.
  set (x := a * r^2); assert (X0 : 0 <= x) by (unfold x; auto with pos).
  eapply lipschitz_le; [apply norm_2_ge0| |apply dot_ball]; apply Rmult_le_compat_l; [auto|].
  replace (a^2 * r^4) with (x^2) by (unfold x; ring); fold x.
  assert (S : sqrt (1 + x^2) <= 1 + x) by (apply sq_le_le; [lra|rewrite pow2_sqrt by nra; nra]).
  assert (E := exp_ineq1_le x); set (e := exp x) in *.
  replace (exp (2 * x)) with (e * e) by (unfold e; rewrite <- exp_plus; f_equal; ring).
  assert (e * (1 + x) <= e * e) by (apply Rmult_le_compat_l; lra).
  assert (x * 1 <= x * (e * e)) by (apply Rmult_le_compat_l; nra).
  apply Rle_trans with (e * (1 + x) + x); [|nra].
  apply Rplus_le_compat_r, Rmult_le_compat; auto using sqrt_pos, Rmin_r; apply Rmin_glb; [apply sqrt_pos|lra].
Qed.
End Plain.
