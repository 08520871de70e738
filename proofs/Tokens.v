(** Token matrices, their norms, and Lipschitz maps between them. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums.
Open Scope R_scope.

(** x i a is feature a of token i.  Sizes are arguments of what needs them:
    n tokens of D features are the entries with i < n and a < D. *)
Definition tokens := nat -> nat -> R.

Definition tsub (x y : tokens) : tokens := fun i a => x i a - y i a.
Definition tadd (x y : tokens) : tokens := fun i a => x i a + y i a.
Definition scale (k : R) (x : tokens) : tokens := fun i a => k * x i a.
Definition line (x v : tokens) (t : R) : tokens := fun i a => x i a + t * v i a.

Lemma line_1 x y : line y (tsub x y) 1 = x.
Proof. extensionality i; extensionality a; unfold line, tsub; ring. Qed.

Lemma line_0 y v : line y v 0 = y.
Proof. extensionality i; extensionality a; unfold line; ring. Qed.

(** ** Vectors of d features *)

Definition vdot d (p q : nat -> R) := rsum d (fun a => p a * q a).
Definition vnorm d p := sqrt (vdot d p p).

Lemma vdot_comm d p q : vdot d p q = vdot d q p.
Proof. apply rsum_ext; intros; ring. Qed.

Lemma vdot_sq d p : vdot d p p = rsum d (fun a => (p a)^2).
Proof. apply rsum_ext; intros; ring. Qed.

Lemma vdot_ge0 d p : 0 <= vdot d p p.
Proof. rewrite vdot_sq; apply rsum_ge0; intros; apply pow2_ge_0. Qed.

Lemma vnorm_ge0 d p : 0 <= vnorm d p.
Proof. apply sqrt_pos. Qed.

Lemma vnorm_sq d p : (vnorm d p)^2 = vdot d p p.
Proof. apply pow2_sqrt, vdot_ge0. Qed.

Lemma vdot_scal d k p q : vdot d (fun a => k * p a) q = k * vdot d p q.
Proof. unfold vdot; rewrite <- rsum_scal; apply rsum_ext; intros; ring. Qed.

Lemma vdot_minus d p q r : vdot d (fun a => p a - q a) r = vdot d p r - vdot d q r.
Proof. unfold vdot; rewrite <- rsum_minus; apply rsum_ext; intros; ring. Qed.

Lemma vdot_plus d p q r : vdot d (fun a => p a + q a) r = vdot d p r + vdot d q r.
Proof. unfold vdot; rewrite <- rsum_plus; apply rsum_ext; intros; ring. Qed.

Lemma vdot_rsum d n (p : nat -> nat -> R) q :
  vdot d (fun a => rsum n (fun j => p j a)) q = rsum n (fun j => vdot d (p j) q).
Proof.
  unfold vdot; rewrite rsum_swap; apply rsum_ext; intros; symmetry; apply rsum_scal_r.
Qed.

(** From squares to values. *)
Lemma sq_le_le p q : 0 <= q -> p^2 <= q^2 -> p <= q.
Proof. intros Q H; destruct (Rle_lt_dec p q) as [|L]; [auto|nra]. Qed.

Lemma abs_le_of_sq p q : 0 <= q -> p^2 <= q^2 -> Rabs p <= q.
Proof. intros Q H; apply sq_le_le; [auto|rewrite pow2_abs; auto]. Qed.

Lemma vdot_le d p q : Rabs (vdot d p q) <= vnorm d p * vnorm d q.
Proof.
  apply abs_le_of_sq; [apply Rmult_le_pos; apply vnorm_ge0|].
  rewrite Rpow_mult_distr, !vnorm_sq, !vdot_sq; unfold vdot.
  generalize (cauchy_schwarz d (fun _ => 1) p q ltac:(intros; lra)).
  rewrite (rsum_ext d (fun a => 1 * (p a * q a)) (fun a => p a * q a)) by (intros; ring).
  rewrite (rsum_ext d (fun a => 1 * (p a)^2) (fun a => (p a)^2)) by (intros; ring).
  rewrite (rsum_ext d (fun a => 1 * (q a)^2) (fun a => (q a)^2)) by (intros; ring); auto.
Qed.

Lemma vdot_le_r d p q : vdot d p q <= vnorm d p * vnorm d q.
Proof. eapply Rle_trans; [apply Rle_abs|apply vdot_le]. Qed.

Lemma vnorm_scal d k p : vnorm d (fun a => k * p a) = Rabs k * vnorm d p.
Proof.
  unfold vnorm; rewrite vdot_scal, vdot_comm, vdot_scal, <- Rmult_assoc.
  rewrite sqrt_mult by (apply Rle_0_sqr || apply vdot_ge0); f_equal; apply sqrt_Rsqr_abs.
Qed.

Lemma vnorm_plus d p q : vnorm d (fun a => p a + q a) <= vnorm d p + vnorm d q.
Proof.
  apply sq_le_le; [apply Rplus_le_le_0_compat; apply vnorm_ge0|].
  rewrite vnorm_sq, vdot_plus, (vdot_comm d p), (vdot_comm d q), !vdot_plus, (vdot_comm d q p).
  generalize (vdot_le_r d p q) (vnorm_sq d p) (vnorm_sq d q); nra.
Qed.

(** The norm is the largest inner product with a unit vector. *)
Lemma vnorm_dual d p B : 0 <= B -> (forall w, vdot d w p <= B * vnorm d w) -> vnorm d p <= B.
Proof.
  intros B0 H; specialize (H p); rewrite <- vnorm_sq in H; generalize (vnorm_ge0 d p); nra.
Qed.

(** ** Norms of token matrices *)

(** Entrywise 1-norm and infinity norm. *)
Definition norm_1 n D (x : tokens) := rsum n (fun i => rsum D (fun a => Rabs (x i a))).
Definition norm_inf n D (x : tokens) := rmax n (fun i => rmax D (fun a => Rabs (x i a))).

(** The 2-norm (Frobenius), and the sum and the largest of the 2-norms of the tokens. *)
Definition norm_2 n D (x : tokens) := vnorm n (fun i => vnorm D (x i)).
Definition token_sum n D (x : tokens) := rsum n (fun i => vnorm D (x i)).
Definition token_max n D (x : tokens) := rmax n (fun i => vnorm D (x i)).

Definition dot n D (x y : tokens) := rsum n (fun i => vdot D (x i) (y i)).

Lemma norm_2_sq n D x : (norm_2 n D x)^2 = rsum n (fun i => (vnorm D (x i))^2).
Proof. unfold norm_2; rewrite vnorm_sq; apply vdot_sq. Qed.

Lemma norm_2_dot n D x : (norm_2 n D x)^2 = dot n D x x.
Proof. rewrite norm_2_sq; apply rsum_ext; intros; apply vnorm_sq. Qed.

Lemma norm_2_ge0 n D x : 0 <= norm_2 n D x.
Proof. apply vnorm_ge0. Qed.

Lemma norm_inf_ge0 n D x : 0 <= norm_inf n D x.
Proof. apply rmax_ge0. Qed.

Lemma entry_le_norm_inf n D x i a :
  (i < n)%nat -> (a < D)%nat -> Rabs (x i a) <= norm_inf n D x.
Proof.
  intros Hi Ha; apply Rle_trans with (rmax D (fun a => Rabs (x i a))).
  - apply (rmax_ge D (fun a => Rabs (x i a))), Ha.
  - apply (rmax_ge n (fun i => rmax D (fun a => Rabs (x i a)))), Hi.
Qed.

Lemma norm_inf_le n D x B :
  0 <= B -> (forall i a, (i < n)%nat -> (a < D)%nat -> Rabs (x i a) <= B) -> norm_inf n D x <= B.
Proof. intros B0 H; apply rmax_le; [auto|]; intros; apply rmax_le; auto. Qed.

Lemma vnorm_le_token_max n D x i : (i < n)%nat -> vnorm D (x i) <= token_max n D x.
Proof. apply (rmax_ge n (fun i => vnorm D (x i))). Qed.

Lemma entry_le_vnorm D p a : (a < D)%nat -> Rabs (p a) <= vnorm D p.
Proof.
  intros Ha; apply abs_le_of_sq; [apply vnorm_ge0|]; rewrite vnorm_sq, vdot_sq.
  apply (rsum_ge_term D (fun a => (p a)^2)); [auto|]; intros; apply pow2_ge_0.
Qed.

Lemma vnorm_le_norm_2 n D x i : (i < n)%nat -> vnorm D (x i) <= norm_2 n D x.
Proof.
  intros Hi; eapply Rle_trans; [apply Rle_abs|].
  apply (entry_le_vnorm n (fun i => vnorm D (x i))), Hi.
Qed.

Lemma dot_le n D x y : dot n D x y <= norm_2 n D x * norm_2 n D y.
Proof.
  eapply Rle_trans; [apply rsum_le; intros; apply vdot_le_r|].
  apply (vdot_le_r n (fun i => vnorm D (x i))).
Qed.

(** Norms as suprema of inner products. *)
Lemma norm_2_dual n D x B :
  0 <= B -> (forall w, dot n D w x <= B * norm_2 n D w) -> norm_2 n D x <= B.
Proof.
  intros B0 H; specialize (H x); rewrite <- norm_2_dot in H; generalize (norm_2_ge0 n D x); nra.
Qed.

Lemma token_sum_dual n D x B :
  (forall w, (forall i, (i < n)%nat -> vnorm D (w i) <= 1) -> dot n D w x <= B) ->
  token_sum n D x <= B.
Proof.
  intros H; pose (w := fun i a => / vnorm D (x i) * x i a).
  assert (E : forall i, vnorm D (w i) <= 1 /\ vdot D (w i) (x i) = vnorm D (x i)).
  { intros i; unfold w; rewrite vnorm_scal, vdot_scal, <- vnorm_sq.
    destruct (Rle_lt_or_eq_dec _ _ (vnorm_ge0 D (x i))) as [L|<-]; [|rewrite Rmult_0_r; simpl; lra].
    rewrite Rabs_pos_eq by (apply Rlt_le, Rinv_0_lt_compat, L).
    rewrite Rinv_l by lra; split; [lra|field; lra]. }
  eapply Rle_trans; [|apply (H w); intros; apply E].
  apply Req_le, rsum_ext; intros; symmetry; apply E.
Qed.

Lemma token_max_dual n D x B :
  0 <= B -> (forall i w, (i < n)%nat -> vdot D w (x i) <= B * vnorm D w) -> token_max n D x <= B.
Proof. intros B0 H; apply rmax_le; [auto|]; intros; apply vnorm_dual; auto. Qed.

Lemma norm_2_plus n D x y : norm_2 n D (tadd x y) <= norm_2 n D x + norm_2 n D y.
Proof.
  apply norm_2_dual; [apply Rplus_le_le_0_compat; apply norm_2_ge0|]; intros w.
  replace (dot n D w (tadd x y)) with (dot n D w x + dot n D w y).
  - generalize (dot_le n D w x) (dot_le n D w y); nra.
  - unfold dot; rewrite <- rsum_plus; apply rsum_ext; intros i _.
    rewrite !(vdot_comm D (w i)); symmetry; apply vdot_plus.
Qed.

(** What makes N a norm of n tokens of D features.  The last two laws hold for every norm,
    as all norms of a space of finite dimension are equivalent; they also say that entries
    outside n x D do not count. *)
Record token_norm n D (N : tokens -> R) := {
  norm_triangle : forall x y, N (tadd x y) <= N x + N y;
  norm_scale : forall k x, N (scale k x) = Rabs k * N x;
  entry_le_norm : exists a, 0 <= a /\ forall x i b, (i < n)%nat -> (b < D)%nat -> Rabs (x i b) <= a * N x;
  norm_le_entry : exists a, 0 <= a /\ forall x B, 0 <= B ->
    (forall i b, (i < n)%nat -> (b < D)%nat -> Rabs (x i b) <= B) -> N x <= a * B }.

(** ** Lipschitz maps *)

(** |f(x) - f(y)| <= K |x - y| for all x, y of the domain, norms N before and N' after f. *)
Definition lipschitz_on (dom : tokens -> Prop) (N N' : tokens -> R) (f : tokens -> tokens) K :=
  forall x y, dom x -> dom y -> N' (tsub (f x) (f y)) <= K * N (tsub x y).

Definition everywhere (x : tokens) := True.
Notation lipschitz := (lipschitz_on everywhere).

(** Constants of a composition multiply. *)
Lemma lipschitz_comp dom N N' N'' f g K L :
  0 <= L -> lipschitz_on dom N N' f K -> lipschitz N' N'' g L ->
  lipschitz_on dom N N'' (fun x => g (f x)) (L * K).
Proof.
  intros L0 F G x y Dx Dy; eapply Rle_trans; [apply (G _ _ I I)|].
  rewrite Rmult_assoc; apply Rmult_le_compat_l; auto.
Qed.

Lemma lipschitz_le dom N N' f K L :
  (forall x, 0 <= N x) -> K <= L -> lipschitz_on dom N N' f K -> lipschitz_on dom N N' f L.
Proof.
  intros P H F x y Dx Dy; eapply Rle_trans; [apply F; auto|]; apply Rmult_le_compat_r; auto.
Qed.

(** ** Linear maps of tokens *)

(** p W for a row vector p and a D x D' matrix W; X W for a token matrix X. *)
Definition vmul D (p : nat -> R) (W : tokens) (b : nat) := rsum D (fun a => p a * W a b).
Definition rmul D (W x : tokens) : tokens := fun i => vmul D (x i) W.
Definition transpose (W : tokens) : tokens := fun a b => W b a.

Lemma vmul_minus D p q W : vmul D (fun a => p a - q a) W = (fun b => vmul D p W b - vmul D q W b).
Proof.
  extensionality b; unfold vmul; rewrite <- rsum_minus; apply rsum_ext; intros; ring.
Qed.

Lemma rmul_tsub D W x y : tsub (rmul D W x) (rmul D W y) = rmul D W (tsub x y).
Proof. extensionality i; symmetry; apply vmul_minus. Qed.

(** <p W, q> = <p, q W^T>. *)
Lemma vdot_vmul D D' p W q : vdot D' (vmul D p W) q = vdot D p (vmul D' q (transpose W)).
Proof.
  unfold vdot, vmul, transpose.
  rewrite (rsum_ext D' _ (fun b => rsum D (fun a => p a * W a b * q b)))
    by (intros; symmetry; apply rsum_scal_r).
  rewrite rsum_swap; apply rsum_ext; intros a _; rewrite <- rsum_scal; apply rsum_ext; intros; ring.
Qed.

(** |W|_2 <= w. *)
Definition opnorm_le D D' (W : tokens) w := forall p, vnorm D' (vmul D p W) <= w * vnorm D p.

Lemma opnorm_transpose D D' W w : 0 <= w -> opnorm_le D D' W w -> opnorm_le D' D (transpose W) w.
Proof.
  intros w0 H q; apply vnorm_dual; [apply Rmult_le_pos; [auto|apply vnorm_ge0]|]; intros p.
  rewrite <- vdot_vmul; eapply Rle_trans; [apply vdot_le_r|].
  generalize (H p) (vnorm_ge0 D' q); nra.
Qed.

Lemma rmul_lipschitz_2 n D D' W w :
  0 <= w -> opnorm_le D D' W w -> lipschitz (norm_2 n D) (norm_2 n D') (rmul D W) w.
Proof.
  intros w0 H x y _ _; rewrite rmul_tsub; set (v := tsub x y).
  apply sq_le_le; [apply Rmult_le_pos; [auto|apply norm_2_ge0]|].
  rewrite Rpow_mult_distr, !norm_2_sq, <- rsum_scal; apply rsum_le; intros i _.
  rewrite <- Rpow_mult_distr; apply pow_incr; split; [apply vnorm_ge0|apply H].
Qed.

Lemma rmul_lipschitz_token_max n D D' W w :
  0 <= w -> opnorm_le D D' W w -> lipschitz (token_max n D) (token_max n D') (rmul D W) w.
Proof.
  intros w0 H x y _ _; rewrite rmul_tsub.
  apply rmax_le; [apply Rmult_le_pos; [auto|apply rmax_ge0]|]; intros i Hi.
  eapply Rle_trans; [apply H|]; apply Rmult_le_compat_l; [auto|].
  apply (vnorm_le_token_max n D (tsub x y)), Hi.
Qed.

(** |W^T|_inf <= w: the absolute column sums of W, which bound x |-> x W for rows x. *)
Definition colsum_le D D' (W : tokens) w :=
  forall b, (b < D')%nat -> rsum D (fun a => Rabs (W a b)) <= w.

Lemma rmul_lipschitz_inf n D D' W w :
  0 <= w -> colsum_le D D' W w -> lipschitz (norm_inf n D) (norm_inf n D') (rmul D W) w.
Proof.
  intros w0 H x y _ _; rewrite rmul_tsub; set (v := tsub x y).
  apply norm_inf_le; [apply Rmult_le_pos; [auto|apply norm_inf_ge0]|]; intros i b Hi Hb.
  eapply Rle_trans; [apply rsum_abs|].
  apply Rle_trans with (rsum D (fun a => Rabs (W a b) * norm_inf n D v)).
  - apply rsum_le; intros a Ha; rewrite Rabs_mult, Rmult_comm.
    apply Rmult_le_compat_l; [apply Rabs_pos|apply entry_le_norm_inf; auto].
  - rewrite rsum_scal_r; apply Rmult_le_compat_r; [apply norm_inf_ge0|auto].
Qed.
