(** Finite sums and maxima of reals, and the inequalities between them that the proofs need. *)
From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** f 0 + ... + f (n-1). *)
Fixpoint rsum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S k => rsum k f + f k end.

Lemma rsum_ext n f g : (forall j, (j < n)%nat -> f j = g j) -> rsum n f = rsum n g.
Proof. induction n as [|n IH]; intros H; simpl; [reflexivity|]; rewrite IH, (H n); auto. Qed.

Lemma rsum_le n f g : (forall j, (j < n)%nat -> f j <= g j) -> rsum n f <= rsum n g.
Proof. induction n as [|n IH]; intros H; simpl; [lra|]; apply Rplus_le_compat; auto. Qed.

Lemma rsum_plus n f g : rsum n (fun j => f j + g j) = rsum n f + rsum n g.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma rsum_minus n f g : rsum n (fun j => f j - g j) = rsum n f - rsum n g.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma rsum_scal n c f : rsum n (fun j => c * f j) = c * rsum n f.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma rsum_scal_r n c f : rsum n (fun j => f j * c) = rsum n f * c.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma rsum_const n c : rsum n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; [simpl; ring|]; rewrite S_INR; simpl; rewrite IH; ring. Qed.

Lemma rsum_0 n : rsum n (fun _ => 0) = 0.
Proof. rewrite rsum_const; ring. Qed.

Lemma rsum_ge0 n f : (forall j, (j < n)%nat -> 0 <= f j) -> 0 <= rsum n f.
Proof. intros H; rewrite <- (rsum_0 n); apply rsum_le; auto. Qed.

Lemma Rabs_minus_le a b : Rabs (a - b) <= Rabs a + Rabs b.
Proof. unfold Rminus; rewrite <- (Rabs_Ropp b); apply Rabs_triang. Qed.

Lemma rsum_abs n f : Rabs (rsum n f) <= rsum n (fun j => Rabs (f j)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]; lra.
Qed.

Lemma rsum_swap n m f :
  rsum n (fun i => rsum m (fun j => f i j)) = rsum m (fun j => rsum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl; [symmetry; apply rsum_0|].
  rewrite IH, <- rsum_plus; reflexivity.
Qed.

Lemma rsum_shift k f : rsum (S k) f = f O + rsum k (fun j => f (S j)).
Proof. induction k as [|k IH]; [simpl; ring|]; simpl in *; rewrite IH; ring. Qed.

Lemma rsum_app a b f : rsum (a + b) f = rsum a f + rsum b (fun j => f (a + j)%nat).
Proof.
  induction b as [|b IH]; [rewrite Nat.add_0_r; simpl; ring|].
  rewrite Nat.add_succ_r; simpl; rewrite IH; ring.
Qed.

(** Kronecker's delta. *)
Definition delta (i j : nat) : R := if Nat.eqb i j then 1 else 0.

Lemma delta_same i : delta i i = 1.
Proof. unfold delta; rewrite Nat.eqb_refl; reflexivity. Qed.

Lemma delta_diff i j : i <> j -> delta i j = 0.
Proof. intros H; unfold delta; apply Nat.eqb_neq in H; rewrite H; reflexivity. Qed.

Lemma delta_cases i j : i = j /\ delta i j = 1 \/ i <> j /\ delta i j = 0.
Proof. unfold delta; destruct (Nat.eqb_spec i j); auto. Qed.

Lemma rsum_delta n i f : (i < n)%nat -> rsum n (fun j => delta i j * f j) = f i.
Proof.
  induction n as [|n IH]; intros H; [lia|]; simpl.
  destruct (Nat.eq_dec i n) as [->|ne].
  - rewrite delta_same, (rsum_ext _ _ (fun _ => 0)), rsum_0; [ring|].
    intros j Hj; rewrite delta_diff by lia; ring.
  - rewrite IH by lia; rewrite delta_diff by auto; ring.
Qed.

(** A sum of nonnegative terms is at least each of them. *)
Lemma rsum_ge_term n f i :
  (i < n)%nat -> (forall j, (j < n)%nat -> 0 <= f j) -> f i <= rsum n f.
Proof.
  intros Hi H; rewrite <- (rsum_delta n i f Hi); apply rsum_le; intros j Hj.
  specialize (H j Hj); destruct (delta_cases i j) as [[_ ->]|[_ ->]]; lra.
Qed.

(** A nonnegative quadratic form has a nonpositive discriminant. *)
Lemma discriminant A B C :
  0 <= A -> 0 <= B -> (forall s t, 0 <= s^2 * A - 2 * s * t * C + t^2 * B) -> C^2 <= A * B.
Proof.
  intros A0 B0 Q; destruct (Req_dec B 0) as [B00|B00].
  - generalize (Q C (A + 1)); rewrite B00; intros; nra.
  - generalize (Q B C); intros; apply Rmult_le_reg_l with B; [lra|]; nra.
Qed.

(** Cauchy-Schwarz with nonnegative weights p. *)
Lemma cauchy_schwarz n p a b :
  (forall j, (j < n)%nat -> 0 <= p j) ->
  (rsum n (fun j => p j * (a j * b j)))^2 <=
  rsum n (fun j => p j * (a j)^2) * rsum n (fun j => p j * (b j)^2).
Proof.
  intros H; apply discriminant.
  - apply rsum_ge0; intros; apply Rmult_le_pos; [auto|apply pow2_ge_0].
  - apply rsum_ge0; intros; apply Rmult_le_pos; [auto|apply pow2_ge_0].
  - intros s t; rewrite <- !rsum_scal, <- rsum_minus, <- rsum_plus; apply rsum_ge0.
    intros j Hj; replace (_ + _) with (p j * (s * a j - t * b j)^2) by ring.
    apply Rmult_le_pos; [auto|apply pow2_ge_0].
Qed.

(** Jensen's inequality for the square, with weights that sum to one. *)
Lemma jensen_square n p a :
  (forall j, (j < n)%nat -> 0 <= p j) -> rsum n p = 1 ->
  (rsum n (fun j => p j * a j))^2 <= rsum n (fun j => p j * (a j)^2).
Proof.
  intros H H1; generalize (cauchy_schwarz n p a (fun _ => 1) H).
  rewrite (rsum_ext n (fun j => p j * (a j * 1)) (fun j => p j * a j)) by (intros; ring).
  rewrite (rsum_ext n (fun j => p j * 1^2) p) by (intros; ring).
  rewrite H1; lra.
Qed.

(** The mean square about r is the variance plus the square of the mean's distance from r. *)
Lemma parallel_axis n p f r (m := rsum n (fun j => p j * f j)) : rsum n p = 1 ->
  rsum n (fun j => p j * (f j - m)^2) + (r - m)^2 = rsum n (fun j => p j * (f j - r)^2).
Proof.
  intros H1; rewrite (rsum_ext n (fun j => p j * (f j - m)^2)
    (fun j => p j * (f j - r)^2 - (2 * (m - r) * (p j * f j) - (m - r) * (m + r) * p j)))
    by (intros; ring).
  rewrite !rsum_minus, !rsum_scal, H1; fold m; ring.
Qed.

Lemma variance_le n p f r (m := rsum n (fun j => p j * f j)) : rsum n p = 1 ->
  rsum n (fun j => p j * (f j - m)^2) <= rsum n (fun j => p j * (f j - r)^2).
Proof. intros H1; rewrite <- (parallel_axis n p f r H1); generalize (pow2_ge_0 (r - m)); fold m; lra. Qed.

Lemma is_derive_rsum n (F : nat -> R -> R) (F' : nat -> R) t :
  (forall j, (j < n)%nat -> is_derive (F j) t (F' j)) ->
  is_derive (fun u => rsum n (fun j => F j u)) t (rsum n F').
Proof.
  induction n as [|n IH]; intros H; simpl.
  - apply (is_derive_const (K := R_AbsRing) (V := R_NormedModule)).
  - apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule)); auto.
Qed.

(** A derivative is at most every Lipschitz constant. *)
Lemma is_derive_lipschitz g x l K :
  is_derive g x l -> (forall t, Rabs (g t - g x) <= K * Rabs (t - x)) -> Rabs l <= K.
Proof.
  intros D L; apply is_derive_Reals in D.
  apply le_epsilon; intros eps He.
  destruct (D eps He) as [d Hd].
  assert (d0 : 0 < d) by apply cond_pos.
  specialize (Hd (d / 2) ltac:(lra) ltac:(rewrite Rabs_pos_eq; lra)).
  specialize (L (x + d / 2)); replace (x + d / 2 - x) with (d / 2) in L by ring.
  rewrite (Rabs_pos_eq (d / 2)) in L by lra.
  assert (Q : Rabs ((g (x + d / 2) - g x) / (d / 2)) <= K).
  { unfold Rdiv at 1; rewrite Rabs_mult, (Rabs_pos_eq (/ (d / 2)))
      by (apply Rlt_le, Rinv_0_lt_compat; lra).
    apply Rmult_le_reg_r with (d / 2); [lra|].
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra; exact L. }
  replace l with ((g (x + d / 2) - g x) / (d / 2) - ((g (x + d / 2) - g x) / (d / 2) - l)) by ring.
  eapply Rle_trans; [apply Rabs_minus_le|]; lra.
Qed.

(** The largest of 0, f 0, ..., f (n-1). *)
Fixpoint rmax (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S k => Rmax (rmax k f) (f k) end.

Lemma rmax_ge0 n f : 0 <= rmax n f.
Proof. induction n; simpl; [lra|]; eapply Rle_trans; [eassumption|apply Rmax_l]. Qed.

Lemma rmax_ge n f i : (i < n)%nat -> f i <= rmax n f.
Proof.
  induction n as [|n IH]; intros H; [lia|]; simpl.
  destruct (Nat.eq_dec i n) as [->|]; [apply Rmax_r|].
  apply Rle_trans with (rmax n f); [apply IH; lia|apply Rmax_l].
Qed.

Lemma rmax_le n f B : 0 <= B -> (forall i, (i < n)%nat -> f i <= B) -> rmax n f <= B.
Proof. induction n; intros B0 H; simpl; [exact B0|]; apply Rmax_lub; auto. Qed.
