(** Token matrices, their norms, and Lipschitz maps between them. *)
From Lipsa Require Import Sums.

(** x i a is feature a of token i.  Sizes are arguments of what needs them:
    n tokens of D features are the entries with i < n and a < D. *)
Definition tokens := nat -> nat -> R.

Definition tsub (x y : tokens) : tokens := fun i a => x i a - y i a.
Definition tadd (x y : tokens) : tokens := fun i a => x i a + y i a.
Definition scale (k : R) (x : tokens) : tokens := fun i a => k * x i a.
Definition line (x v : tokens) (t : R) : tokens := fun i a => x i a + t * v i a.

(** p W for a row vector p and a D x D' matrix W; X W for a token matrix X. *)
Definition vmul D (p : nat -> R) (W : tokens) (b : nat) := rsum D (fun a => p a * W a b).
Definition rmul D (W x : tokens) : tokens := fun i => vmul D (x i) W.
Definition transpose (W : tokens) : tokens := fun a b => W b a.

(** Equality of token matrices, entry by entry. *)
Ltac token_ring := intros; unfold tsub, tadd, scale, line, rmul, vmul, transpose;
  let i := fresh in let a := fresh in extensionality i; extensionality a; sum_ring.

Lemma line_1 x y : line y (tsub x y) 1 = x.
Proof. token_ring. Qed.
Lemma line_0 y v : line y v 0 = y.
Proof. token_ring. Qed.
Lemma tsub_scale k x y : tsub (scale k x) (scale k y) = scale k (tsub x y).
Proof. token_ring. Qed.
Lemma scale_scale j k x : scale j (scale k x) = scale (j * k) x.
Proof. token_ring. Qed.
Lemma rmul_tsub D W x y : tsub (rmul D W x) (rmul D W y) = rmul D W (tsub x y).
Proof. token_ring. Qed.

(** ** Vectors of d features *)

Definition vdot d (p q : nat -> R) := rsum d (fun a => p a * q a).
Definition vnorm d p := sqrt (vdot d p p).

Lemma vdot_comm d p q : vdot d p q = vdot d q p.
Proof. unfold vdot; sum_ring. Qed.
Lemma vdot_sq d p : vdot d p p = rsum d (fun a => (p a)^2).
Proof. unfold vdot; sum_ring. Qed.
Lemma vdot_scal d k p q : vdot d (fun a => k * p a) q = k * vdot d p q.
Proof. unfold vdot; sum_ring. Qed.
Lemma vdot_minus d p q r : vdot d (fun a => p a - q a) r = vdot d p r - vdot d q r.
Proof. unfold vdot; sum_ring. Qed.
Lemma vdot_plus d p q r : vdot d (fun a => p a + q a) r = vdot d p r + vdot d q r.
Proof. unfold vdot; sum_ring. Qed.
Lemma vdot_rsum d n (p : nat -> nat -> R) q :
  vdot d (fun a => rsum n (fun j => p j a)) q = rsum n (fun j => vdot d (p j) q).
Proof. unfold vdot; rewrite rsum_swap; sum_ring. Qed.

Lemma vdot_ge0 d p : 0 <= vdot d p p.
Proof. rewrite vdot_sq; pos. Qed.
Lemma vnorm_ge0 d p : 0 <= vnorm d p.
Proof. apply sqrt_pos. Qed.
#[global] Hint Resolve vdot_ge0 vnorm_ge0 : pos.

Lemma vnorm_sq d p : (vnorm d p)^2 = vdot d p p.
Proof. apply pow2_sqrt, vdot_ge0. Qed.

(** <p W, q> = <p, q W^T>. *)
Lemma vdot_vmul D D' p W q : vdot D' (vmul D p W) q = vdot D p (vmul D' q (transpose W)).
Proof. unfold vdot, vmul, transpose; rewrite rsum_assoc; sum_ring. Qed.

(** From squares to values. *)
Lemma sq_le_le p q : 0 <= q -> p^2 <= q^2 -> p <= q.
Proof. intros Q H; destruct (Rle_lt_dec p q) as [|L]; [auto|nra]. Qed.

Lemma vdot_le d p q : Rabs (vdot d p q) <= vnorm d p * vnorm d q.
Proof.
  apply sq_le_le; [pos|]; rewrite pow2_abs, Rpow_mult_distr, !vnorm_sq, !vdot_sq.
  replace (vdot d p q) with (rsum d (fun a => 1 * (p a * q a))) by (unfold vdot; sum_ring).
  le_by (cauchy_schwarz d (fun _ => 1) p q); [pos|apply Req_le; f_equal; sum_ring].
Qed.
Lemma vdot_le_r d p q : vdot d p q <= vnorm d p * vnorm d q.
Proof. le_by Rle_abs; apply vdot_le. Qed.

Lemma vnorm_scal d k p : vnorm d (fun a => k * p a) = Rabs k * vnorm d p.
Proof.
  unfold vnorm; rewrite vdot_scal, vdot_comm, vdot_scal, <- Rmult_assoc, sqrt_mult by pos.
  f_equal; apply sqrt_Rsqr_abs.
Qed.

Lemma vnorm_plus d p q : vnorm d (fun a => p a + q a) <= vnorm d p + vnorm d q.
Proof.
  apply sq_le_le; [pos|]; rewrite vnorm_sq.
  replace (vdot d _ _) with (vdot d p p + 2 * vdot d p q + vdot d q q) by (unfold vdot; sum_ring).
  generalize (vdot_le_r d p q) (vnorm_sq d p) (vnorm_sq d q); nra.
Qed.

(** The norm is the largest inner product with a unit vector. *)
Lemma vnorm_dual d p B : 0 <= B -> (forall w, vdot d w p <= B * vnorm d w) -> vnorm d p <= B.
Proof. intros B0 H; specialize (H p); rewrite <- vnorm_sq in H; generalize (vnorm_ge0 d p); nra. Qed.

Lemma entry_le_vnorm D p a : (a < D)%nat -> Rabs (p a) <= vnorm D p.
Proof.
  intros Ha; apply sq_le_le; [pos|]; rewrite pow2_abs, vnorm_sq, vdot_sq.
  apply (rsum_ge_term D (fun a => (p a)^2)); pos.
Qed.

(** What the sum, the 2-norm and the maximum of n nonnegative numbers have in common. *)
Record aggregate n (F : (nat -> R) -> R) := {
  agg_le : forall p q, (forall i, (i < n)%nat -> 0 <= p i <= q i) -> F p <= F q;
  agg_plus : forall p q, F (fun i => p i + q i) <= F p + F q;
  agg_scal : forall k p, 0 <= k -> F (fun i => k * p i) = k * F p;
  agg_term : forall p i, (forall j, (j < n)%nat -> 0 <= p j) -> (i < n)%nat -> p i <= F p }.

Lemma aggregate_rsum n : aggregate n (rsum n).
Proof.
  split; intros; [|apply Req_le, rsum_plus|apply rsum_scal|apply rsum_ge_term; auto].
  apply rsum_le; firstorder.
Qed.

Lemma aggregate_vnorm n : aggregate n (vnorm n).
Proof.
  split; intros.
  - apply sqrt_le_1_alt; rewrite !vdot_sq; apply rsum_le; intros; apply pow_incr; auto.
  - apply vnorm_plus.
  - rewrite vnorm_scal, Rabs_pos_eq; auto.
  - le_by Rle_abs; apply entry_le_vnorm; auto.
Qed.

Lemma aggregate_rmax n : aggregate n (rmax n).
Proof.
  split; intros.
  - apply rmax_le; [pos|]; intros i Hi; apply Rle_trans with (q i); [firstorder|apply rmax_ge, Hi].
  - apply rmax_le; [pos|]; intros; apply Rplus_le_compat; apply rmax_ge; auto.
  - induction n as [|n IH]; simpl; [ring|rewrite IH; apply RmaxRmult; auto].
  - apply rmax_ge; auto.
Qed.

Lemma agg_ge0 n F p : aggregate n F -> (forall i, 0 <= p i) -> 0 <= F p.
Proof.
  intros A H; rewrite <- (Rmult_0_l (F p)), <- (agg_scal n F A) by lra.
  apply (agg_le n F A); intros; rewrite Rmult_0_l; pos.
Qed.

Lemma le_sqrt_sq t : t <= (sqrt t)^2.
Proof. destruct (Rle_lt_dec 0 t); [rewrite pow2_sqrt|generalize (pow2_ge_0 (sqrt t))]; lra. Qed.

(** Cauchy-Schwarz for double sums, with bounds on the two factors. *)
Lemma cauchy_schwarz2 n p a b A B X Y :
  (forall i j, (i < n)%nat -> (j < n)%nat -> 0 <= p i j) -> 0 <= X -> 0 <= Y ->
  rsum n (fun i => rsum n (fun j => p i j * (a i j)^2)) <= A * X^2 ->
  rsum n (fun i => rsum n (fun j => p i j * (b i j)^2)) <= B * Y^2 ->
  rsum n (fun i => rsum n (fun j => p i j * (a i j * b i j))) <= sqrt (A * B) * X * Y.
Proof.
  intros Hp X0 Y0 HA HB; apply sq_le_le; [auto with pos|].
  assert (Pos : forall f : nat -> nat -> R, 0 <= rsum n (fun i => rsum n (fun j => p i j * (f i j)^2)))
    by auto with pos.
  apply Rle_trans with ((A * X^2) * (B * Y^2)).
  - eapply Rle_trans; [apply (discriminant _ _ _ (Pos a) (Pos b))|apply Rmult_le_compat; auto].
    intros s t; generalize (Pos (fun i j => s * a i j - t * b i j)).
    rewrite (rsum2_ext n n _ (fun i j => s^2 * (p i j * (a i j)^2) + (-2 * s * t * (p i j * (a i j * b i j))
      + t^2 * (p i j * (b i j)^2)))) by (intros; ring).
    rewrite !rsum2_plus, !rsum2_scal; lra.
  - generalize (Rmult_le_compat_r _ _ _ (pow2_ge_0 (X * Y)) (le_sqrt_sq (A * B))); lra.
Qed.

(** Means with weights p: inner products, and Cauchy-Schwarz with bounds on the two factors. *)
Lemma vdot_mean n d p (v : tokens) w :
  vdot d w (fun a => rsum n (fun j => p j * v j a)) = rsum n (fun j => p j * vdot d w (v j)).
Proof.
  rewrite vdot_comm, (vdot_rsum d n (fun j a => p j * v j a)).
  apply rsum_ext; intros; rewrite vdot_scal, vdot_comm; reflexivity.
Qed.

Lemma mean_product_le n p f h A B C : (forall j, (j < n)%nat -> 0 <= p j) -> 0 <= C ->
  rsum n (fun j => p j * (f j)^2) <= A -> rsum n (fun j => p j * (h j)^2) <= B -> A * B <= C^2 ->
  rsum n (fun j => p j * (f j * h j)) <= C.
Proof.
  intros p0 C0 HA HB H; apply sq_le_le; [auto|]; eapply Rle_trans; [apply cauchy_schwarz, p0|].
  eapply Rle_trans; [apply Rmult_le_compat|exact H]; auto with pos.
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

Lemma norm_2_ge0 n D x : 0 <= norm_2 n D x.
Proof. apply vnorm_ge0. Qed.
#[global] Hint Resolve norm_2_ge0 : pos.
#[global] Hint Extern 1 (0 <= norm_inf _ _ _) => apply rmax_ge0 : pos.
#[global] Hint Extern 1 (0 <= token_max _ _ _) => apply rmax_ge0 : pos.

Lemma entry_le_norm_inf n D x i a : (i < n)%nat -> (a < D)%nat -> Rabs (x i a) <= norm_inf n D x.
Proof.
  intros Hi Ha; le_by (rmax_ge D (fun a => Rabs (x i a)) a).
  apply (rmax_ge n (fun i => rmax D (fun a => Rabs (x i a)))), Hi.
Qed.

Lemma norm_inf_le n D x B :
  0 <= B -> (forall i a, (i < n)%nat -> (a < D)%nat -> Rabs (x i a) <= B) -> norm_inf n D x <= B.
Proof. intros B0 H; apply rmax_le; [auto|]; intros; apply rmax_le; auto. Qed.

Lemma vnorm_le_token_max n D x i : (i < n)%nat -> vnorm D (x i) <= token_max n D x.
Proof. apply (rmax_ge n (fun i => vnorm D (x i))). Qed.
Lemma vnorm_le_norm_2 n D x i : (i < n)%nat -> vnorm D (x i) <= norm_2 n D x.
Proof. intros Hi; apply (agg_term n _ (aggregate_vnorm n) (fun i => vnorm D (x i))); pos. Qed.

(** Norms as suprema of inner products. *)
Lemma norm_2_dual n D x B : 0 <= B -> (forall w, dot n D w x <= B * norm_2 n D w) -> norm_2 n D x <= B.
Proof.
  intros B0 H; specialize (H x); replace (dot n D x x) with ((norm_2 n D x)^2) in H.
  - generalize (norm_2_ge0 n D x); nra.
  - rewrite norm_2_sq; apply rsum_ext; intros; apply vnorm_sq.
Qed.

Lemma token_sum_dual n D x B :
  (forall w, (forall i, (i < n)%nat -> vnorm D (w i) <= 1) -> dot n D w x <= B) -> token_sum n D x <= B.
Proof.
  intros H; pose (w := fun i a => / vnorm D (x i) * x i a).
  assert (E : forall i, vnorm D (w i) <= 1 /\ vdot D (w i) (x i) = vnorm D (x i)).
  { intros i; unfold w; rewrite vnorm_scal, vdot_scal, <- vnorm_sq.
    destruct (Rle_lt_or_eq_dec _ _ (vnorm_ge0 D (x i))) as [L|<-]; [|rewrite Rmult_0_r; simpl; lra].
    rewrite Rabs_pos_eq by pos; rewrite Rinv_l by lra; split; [lra|field; lra]. }
  eapply Rle_trans; [|apply (H w); intros; apply E].
  apply Req_le, rsum_ext; intros; symmetry; apply E.
Qed.

Lemma token_max_dual n D x B :
  0 <= B -> (forall i w, (i < n)%nat -> vdot D w (x i) <= B * vnorm D w) -> token_max n D x <= B.
Proof. intros B0 H; apply rmax_le; [auto|]; intros; apply vnorm_dual; auto. Qed.

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
Lemma lipschitz_comp dom N N' N'' f g K L : 0 <= L -> lipschitz_on dom N N' f K -> lipschitz N' N'' g L ->
  lipschitz_on dom N N'' (fun x => g (f x)) (L * K).
Proof. intros L0 F G x y Dx Dy; le_by (G _ _ I I); rewrite Rmult_assoc; apply Rmult_le_compat_l; auto. Qed.

Lemma lipschitz_le dom N N' f K L :
  (forall x, 0 <= N x) -> K <= L -> lipschitz_on dom N N' f K -> lipschitz_on dom N N' f L.
Proof. intros P H F x y Dx Dy; le_by F; apply Rmult_le_compat_r; auto. Qed.

(** |W|_2 <= w. *)
Definition opnorm_le D D' (W : tokens) w := forall p, vnorm D' (vmul D p W) <= w * vnorm D p.

Lemma opnorm_transpose D D' W w : 0 <= w -> opnorm_le D D' W w -> opnorm_le D' D (transpose W) w.
Proof.
  intros w0 H q; apply vnorm_dual; [pos|]; intros p; rewrite <- vdot_vmul; le_by vdot_le_r.
  generalize (H p) (vnorm_ge0 D' q); nra.
Qed.

(** X |-> X W in the norms that aggregate the 2-norms of the tokens. *)
Lemma rmul_lipschitz n D D' F W w (N := fun d (x : tokens) => F (fun i => vnorm d (x i))) :
  aggregate n F -> 0 <= w -> opnorm_le D D' W w -> lipschitz (N D) (N D') (rmul D W) w.
Proof.
  intros A w0 H x y _ _; rewrite rmul_tsub; unfold N; rewrite <- (agg_scal n F A) by auto.
  apply (agg_le n F A); intros; split; [pos|apply H].
Qed.

Lemma rmul_lipschitz_2 n D D' W w :
  0 <= w -> opnorm_le D D' W w -> lipschitz (norm_2 n D) (norm_2 n D') (rmul D W) w.
Proof. apply (rmul_lipschitz n D D' (vnorm n)), aggregate_vnorm. Qed.
Lemma rmul_lipschitz_token_max n D D' W w :
  0 <= w -> opnorm_le D D' W w -> lipschitz (token_max n D) (token_max n D') (rmul D W) w.
Proof. apply (rmul_lipschitz n D D' (rmax n)), aggregate_rmax. Qed.

(** |W^T|_inf <= w: the absolute column sums of W, which bound x |-> x W for rows x. *)
Definition colsum_le D D' (W : tokens) w := forall b, (b < D')%nat -> rsum D (fun a => Rabs (W a b)) <= w.

(** |<p, W_b>| <= |p|_inf |W_b|_1. *)
Lemma vmul_le_inf D p W b B :
  (forall a, (a < D)%nat -> Rabs (p a) <= B) -> Rabs (vmul D p W b) <= rsum D (fun a => Rabs (W a b)) * B.
Proof.
  intros H; le_by rsum_abs; rewrite <- rsum_scal_r; apply rsum_le; intros a Ha.
  rewrite Rabs_mult, Rmult_comm; apply Rmult_le_compat_l; pos.
Qed.

Lemma rmul_lipschitz_inf n D D' W w :
  0 <= w -> colsum_le D D' W w -> lipschitz (norm_inf n D) (norm_inf n D') (rmul D W) w.
Proof.
  intros w0 H x y _ _; rewrite rmul_tsub; apply norm_inf_le; [pos|]; intros i b Hi Hb.
  le_by (vmul_le_inf D _ W b (norm_inf n D (tsub x y))); [auto using entry_le_norm_inf|].
  apply Rmult_le_compat_r; pos.
Qed.
