(** The norms of Tokens.v are norms, and a map that is Lipschitz in one norm is so in every other. *)
From Coq Require Import Reals Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Tokens.
Open Scope R_scope.

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
  - eapply Rle_trans; [apply Rle_abs|apply entry_le_vnorm; auto].
Qed.

Lemma aggregate_rmax n : aggregate n (rmax n).
Proof.
  split; intros.
  - apply rmax_le; [apply rmax_ge0|]; intros i Hi.
    apply Rle_trans with (q i); [firstorder|apply rmax_ge, Hi].
  - apply rmax_le; [apply Rplus_le_le_0_compat; apply rmax_ge0|].
    intros; apply Rplus_le_compat; apply rmax_ge; auto.
  - induction n as [|n IH]; simpl; [ring|rewrite IH; apply RmaxRmult; auto].
  - apply rmax_ge; auto.
Qed.

Lemma agg_ge0 n F p : aggregate n F -> (forall i, 0 <= p i) -> 0 <= F p.
Proof.
  intros A H; rewrite <- (Rmult_0_l (F p)), <- (agg_scal n F A) by lra.
  apply (agg_le n F A); intros; rewrite Rmult_0_l; auto using Rle_refl.
Qed.

(** An aggregate over the tokens of an aggregate of the absolute values of their features. *)
Lemma aggregate_norm n D F G :
  aggregate n F -> aggregate D G -> token_norm n D (fun x => F (fun i => G (fun a => Rabs (x i a)))).
Proof.
  intros AF AG; assert (G0 := fun p => agg_ge0 D G p AG).
  pose (g := fun (x : tokens) i => G (fun a => Rabs (x i a))).
  assert (g0 : forall x i, 0 <= g x i) by (unfold g; auto using Rabs_pos).
  assert (F1 : 0 <= F (fun _ => G (fun _ => 1))) by (apply (agg_ge0 n F); auto using Rle_0_1).
  destruct AG as [Gle Gplus Gscal Gterm], AF as [Fle Fplus Fscal Fterm]; split.
  - intros x y; eapply Rle_trans; [|apply Fplus]; apply Fle; intros i _; split; [apply (g0 (tadd x y))|].
    eapply Rle_trans; [|apply Gplus]; apply Gle; split; [apply Rabs_pos|apply Rabs_triang].
  - intros k x; rewrite <- Fscal by apply Rabs_pos; f_equal; extensionality i.
    rewrite <- Gscal by apply Rabs_pos; f_equal; extensionality a; apply Rabs_mult.
  - exists 1; split; [lra|]; intros x i b Hi Hb; rewrite Rmult_1_l; apply Rle_trans with (g x i).
    + apply (Gterm (fun a => Rabs (x i a))); auto using Rabs_pos.
    + apply (Fterm (g x)); auto.
  - exists (F (fun _ => G (fun _ => 1))); split; [auto|].
    intros x B B0 H; rewrite Rmult_comm, <- Fscal by auto; apply Fle; intros i Hi; split; [apply g0|].
    rewrite <- Gscal, Rmult_1_r by auto; apply Gle; auto using Rabs_pos.
Qed.

Lemma vnorm_abs D : vnorm D = fun p => vnorm D (fun a => Rabs (p a)).
Proof.
  extensionality p; unfold vnorm; rewrite !vdot_sq; f_equal; apply rsum_ext; intros.
  symmetry; apply pow2_abs.
Qed.

Local Hint Resolve aggregate_rsum aggregate_vnorm aggregate_rmax : core.

(** The entrywise 1-norm, infinity norm and 2-norm, and the sum and the largest of the 2-norms of the
    tokens, are norms. *)
Theorem norm_1_is_norm n D : token_norm n D (norm_1 n D).
Proof. apply aggregate_norm; auto. Qed.

Theorem norm_inf_is_norm n D : token_norm n D (norm_inf n D).
Proof. apply aggregate_norm; auto. Qed.

Theorem norm_2_is_norm n D : token_norm n D (norm_2 n D).
Proof. unfold norm_2; rewrite (vnorm_abs D); apply (aggregate_norm n D); auto. Qed.

Theorem token_sum_is_norm n D : token_norm n D (token_sum n D).
Proof. unfold token_sum; rewrite (vnorm_abs D); apply (aggregate_norm n D); auto. Qed.

Theorem token_max_is_norm n D : token_norm n D (token_max n D).
Proof. unfold token_max; rewrite (vnorm_abs D); apply (aggregate_norm n D); auto. Qed.

Lemma norm_ge0 n D N x : token_norm n D N -> 0 <= N x.
Proof.
  intros H; generalize (norm_triangle _ _ _ H x (scale (-1) x)) (norm_scale _ _ _ H (-1) x).
  generalize (norm_scale _ _ _ H 0 x); rewrite Rabs_R0, Rabs_left by lra.
  replace (tadd x (scale (-1) x)) with (scale 0 x); [lra|].
  extensionality i; extensionality a; unfold scale, tadd; ring.
Qed.

(** All norms are equivalent. *)
Theorem norms_equivalent n D N N' :
  token_norm n D N -> token_norm n D N' -> exists c, 0 <= c /\ forall x, N x <= c * N' x.
Proof.
  intros H H'; destruct (norm_le_entry _ _ _ H) as [a [a0 A]], (entry_le_norm _ _ _ H') as [b [b0 B]].
  exists (a * b); split; [apply Rmult_le_pos; auto|]; intros x; rewrite Rmult_assoc.
  apply A; [apply Rmult_le_pos; [auto|apply (norm_ge0 n D), H']|auto].
Qed.

(** A map that is Lipschitz in one norm is Lipschitz in every other norm. *)
Theorem lipschitz_any_norm n D D' N1 N2 N1' N2' dom f K :
  token_norm n D N1 -> token_norm n D N2 -> token_norm n D' N1' -> token_norm n D' N2' ->
  0 <= K -> lipschitz_on dom N1 N1' f K -> exists K', 0 <= K' /\ lipschitz_on dom N2 N2' f K'.
Proof.
  intros H1 H2 H1' H2' K0 L.
  destruct (norms_equivalent n D N1 N2 H1 H2) as [c [c0 C]].
  destruct (norms_equivalent n D' N2' N1' H2' H1') as [c' [c'0 C']].
  exists (c' * (K * c)); split; [repeat apply Rmult_le_pos; auto|]; intros x y Dx Dy.
  eapply Rle_trans; [apply C'|]; rewrite !Rmult_assoc; apply Rmult_le_compat_l; [auto|].
  eapply Rle_trans; [apply L; auto|]; apply Rmult_le_compat_l; auto.
Qed.
