(** Finite sums and maxima of reals, and the inequalities between them that the proofs need.  Every file
    imports this one, and with it the reals, Coquelicot and R_scope. *)
From Coq Require Export Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Export Coquelicot.
Open Scope R_scope.

(** [pos] proves 0 <= a and 0 < a for sums, products, quotients, squares, norms. *)
Create HintDb pos.
#[global] Hint Resolve Rmult_le_pos Rplus_le_le_0_compat Rmult_lt_0_compat Rdiv_le_0_compat Rinv_0_lt_compat
  Rdiv_lt_0_compat pow2_ge_0 sqrt_pos Rabs_pos pos_INR exp_pos Rlt_le Rle_refl : pos.
#[global] Hint Extern 3 (0 <= ?a * ?a) => exact (Rle_0_sqr a) : pos.
#[global] Hint Extern 9 (_ <= _) => lra : pos.
#[global] Hint Extern 9 (_ < _) => lra : pos.
Ltac pos := intros; try apply Rlt_gt; solve [auto with pos].

(** [le_by H]: H bounds the left side of the goal by something that is left to be bounded. *)
Tactic Notation "le_by" uconstr(H) := eapply Rle_trans; [apply H; auto|].

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

(** [sum_ring]: equality of linear expressions in sums over the same range, term by term. *)
Ltac sum_ring := intros; solve [ring | repeat (rewrite <- rsum_scal_r || rewrite <- rsum_scal ||
  rewrite <- rsum_plus || rewrite <- rsum_minus); apply rsum_ext; sum_ring].

Lemma rsum_const n c : rsum n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; [simpl; ring|]; rewrite S_INR; simpl; rewrite IH; ring. Qed.
Lemma rsum_0 n : rsum n (fun _ => 0) = 0.
Proof. rewrite rsum_const; ring. Qed.

Lemma rsum_ge0 n f : (forall j, (j < n)%nat -> 0 <= f j) -> 0 <= rsum n f.
Proof. intros H; rewrite <- (rsum_0 n); apply rsum_le; auto. Qed.
#[global] Hint Resolve rsum_ge0 pow_le Rle_0_1 : pos.

Lemma Rabs_minus_le a b : Rabs (a - b) <= Rabs a + Rabs b.
Proof. unfold Rminus; rewrite <- (Rabs_Ropp b); apply Rabs_triang. Qed.

Lemma rsum_abs n f : Rabs (rsum n f) <= rsum n (fun j => Rabs (f j)).
Proof. induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|]; le_by Rabs_triang; lra. Qed.

Lemma rsum_swap n m f : rsum n (fun i => rsum m (fun j => f i j)) = rsum m (fun j => rsum n (fun i => f i j)).
Proof. induction n as [|n IH]; simpl; [symmetry; apply rsum_0|rewrite IH; sum_ring]. Qed.

(** (p A) v = p (A v). *)
Lemma rsum_assoc n m p A v : rsum m (fun b => rsum n (fun a => p a * A a b) * v b)
  = rsum n (fun a => p a * rsum m (fun b => A a b * v b)).
Proof.
  rewrite (rsum_ext m _ (fun b => rsum n (fun a => p a * A a b * v b))), rsum_swap by sum_ring; sum_ring.
Qed.

Lemma rsum_app a b f : rsum (a + b) f = rsum a f + rsum b (fun j => f (a + j)%nat).
Proof.
  induction b as [|b IH]; [rewrite Nat.add_0_r; simpl; ring|].
  rewrite Nat.add_succ_r; simpl; rewrite IH; ring.
Qed.

(** Kronecker's delta. *)
Definition delta (i j : nat) : R := if Nat.eqb i j then 1 else 0.

Lemma delta_cases i j : i = j /\ delta i j = 1 \/ i <> j /\ delta i j = 0.
Proof. unfold delta; destruct (Nat.eqb_spec i j); auto. Qed.
Lemma delta_same i : delta i i = 1.
Proof. destruct (delta_cases i i) as [[_ E]|[N _]]; [exact E|contradiction]. Qed.
Lemma delta_diff i j : i <> j -> delta i j = 0.
Proof. destruct (delta_cases i j) as [[-> _]|[_ E]]; [contradiction|auto]. Qed.

Lemma rsum_delta n i f : (i < n)%nat -> rsum n (fun j => delta i j * f j) = f i.
Proof.
  induction n as [|n IH]; intros H; [lia|]; simpl; destruct (delta_cases i n) as [[<- ->]|[ne ->]].
  - rewrite (rsum_ext _ _ (fun _ => 0)), rsum_0; [ring|]; intros; rewrite delta_diff by lia; ring.
  - rewrite IH by lia; ring.
Qed.

(** A sum of nonnegative terms is at least each of them. *)
Lemma rsum_ge_term n f i : (i < n)%nat -> (forall j, (j < n)%nat -> 0 <= f j) -> f i <= rsum n f.
Proof.
  intros Hi H; rewrite <- (rsum_delta n i f Hi); apply rsum_le; intros j Hj.
  specialize (H j Hj); destruct (delta_cases i j) as [[_ ->]|[_ ->]]; lra.
Qed.

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

(** A sum of nonnegative terms is at least any two of them. *)
Lemma rsum_ge_two n f i j : (i < n)%nat -> (j < n)%nat -> i <> j ->
  (forall k, (k < n)%nat -> 0 <= f k) -> f i + f j <= rsum n f.
Proof.
  intros Hi Hj ne H; rewrite <- (rsum_delta n i f Hi), <- (rsum_delta n j f Hj), <- rsum_plus.
  apply rsum_le; intros k Hk; specialize (H k Hk).
  destruct (delta_cases i k) as [[E ->]|[_ ->]], (delta_cases j k) as [[E' ->]|[_ ->]]; congruence || lra.
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
Lemma cauchy_schwarz n p a b : (forall j, (j < n)%nat -> 0 <= p j) ->
  (rsum n (fun j => p j * (a j * b j)))^2 <=
  rsum n (fun j => p j * (a j)^2) * rsum n (fun j => p j * (b j)^2).
Proof.
  intros H; apply discriminant; [pos|pos|]; intros s t.
  replace (_ + _) with (rsum n (fun j => p j * (s * a j - t * b j)^2)) by sum_ring; pos.
Qed.

(** The mean square about r is the variance plus the square of the mean's distance from r. *)
Lemma parallel_axis n p f r (m := rsum n (fun j => p j * f j)) : rsum n p = 1 ->
  rsum n (fun j => p j * (f j - m)^2) + (r - m)^2 = rsum n (fun j => p j * (f j - r)^2).
Proof.
  intros H1; replace (rsum n (fun j => p j * (f j - m)^2)) with
    (rsum n (fun j => p j * (f j - r)^2) - 2 * (m - r) * rsum n (fun j => p j * f j)
     + (m - r) * (m + r) * rsum n p) by sum_ring; rewrite H1; fold m; ring.
Qed.

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
  intros D L; apply is_derive_Reals in D; apply le_epsilon; intros eps He.
  destruct (D eps He) as [d Hd]; assert (d0 := cond_pos d); set (h := d / 2).
  specialize (Hd h ltac:(unfold h; lra) ltac:(unfold h; rewrite Rabs_pos_eq; lra)).
  set (q := (g (x + h) - g x) / h) in Hd; specialize (L (x + h)).
  replace (g (x + h) - g x) with (q * h) in L by (unfold q, h; field; lra).
  replace (x + h - x) with h in L by ring; rewrite Rabs_mult in L.
  apply Rmult_le_reg_r in L; [|apply Rabs_pos_lt; unfold h; lra].
  rewrite Rabs_minus_sym in Hd; generalize (Rabs_triang_inv l q); lra.
Qed.

(** The largest of 0, f 0, ..., f (n-1). *)
Fixpoint rmax (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S k => Rmax (rmax k f) (f k) end.

Lemma rmax_ge0 n f : 0 <= rmax n f.
Proof. induction n; simpl; [lra|]; eapply Rle_trans; [eassumption|apply Rmax_l]. Qed.
#[global] Hint Resolve rmax_ge0 : pos.

Lemma rmax_ge n f i : (i < n)%nat -> f i <= rmax n f.
Proof.
  induction n as [|n IH]; intros H; [lia|]; simpl; destruct (Nat.eq_dec i n) as [->|]; [apply Rmax_r|].
  le_by IH; [lia|apply Rmax_l].
Qed.

Lemma rmax_le n f B : 0 <= B -> (forall i, (i < n)%nat -> f i <= B) -> rmax n f <= B.
Proof. induction n; intros B0 H; simpl; [exact B0|]; apply Rmax_lub; auto. Qed.
