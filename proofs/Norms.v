(** The norms of Tokens.v are norms, and a map that is Lipschitz in one norm is so in every other. *)
From Lipsa Require Import Sums Tokens.

(** An aggregate over the tokens of an aggregate of the absolute values of their features. *)
Lemma aggregate_norm n D F G :
  aggregate n F -> aggregate D G -> token_norm n D (fun x => F (fun i => G (fun a => Rabs (x i a)))).
Proof.
  intros AF AG; pose (g := fun (x : tokens) i => G (fun a => Rabs (x i a))).
  assert (g0 : forall x i, 0 <= g x i) by (intros; apply (agg_ge0 D G); pos).
  assert (F1 : 0 <= F (fun _ => G (fun _ => 1)))
    by (apply (agg_ge0 n F); [auto|]; intros; apply (agg_ge0 D G); pos).
  destruct AG as [Gle Gplus Gscal Gterm], AF as [Fle Fplus Fscal Fterm]; split.
  - intros x y; eapply Rle_trans; [|apply Fplus]; apply Fle; intros i _; split; [apply (g0 (tadd x y))|].
    eapply Rle_trans; [|apply Gplus]; apply Gle; split; [pos|apply Rabs_triang].
  - intros k x; rewrite <- Fscal by pos; f_equal; extensionality i.
    rewrite <- Gscal by pos; f_equal; extensionality a; apply Rabs_mult.
  - exists 1; split; [lra|]; intros x i b Hi Hb; rewrite Rmult_1_l.
    le_by (Gterm (fun a => Rabs (x i a)) b); [pos|apply (Fterm (g x)); auto].
  - exists (F (fun _ => G (fun _ => 1))); split; [auto|].
    intros x B B0 H; rewrite Rmult_comm, <- Fscal by auto; apply Fle; intros i Hi; split; [apply g0|].
    rewrite <- Gscal, Rmult_1_r by auto; apply Gle; pos.
Qed.

Lemma vnorm_abs D : vnorm D = fun p => vnorm D (fun a => Rabs (p a)).
Proof.
  extensionality p; unfold vnorm; rewrite !vdot_sq; f_equal; apply rsum_ext; intros; symmetry; apply pow2_abs.
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
  replace (tadd x (scale (-1) x)) with (scale 0 x) by token_ring; lra.
Qed.

(** All norms are equivalent. *)
Theorem norms_equivalent n D N N' :
  token_norm n D N -> token_norm n D N' -> exists c, 0 <= c /\ forall x, N x <= c * N' x.
Proof.
  intros H H'; destruct (norm_le_entry _ _ _ H) as [a [a0 A]], (entry_le_norm _ _ _ H') as [b [b0 B]].
  exists (a * b); split; [pos|]; intros x; rewrite Rmult_assoc.
  apply A; auto using Rmult_le_pos, (norm_ge0 n D N' x H').
Qed.

(** A map that is Lipschitz in one norm is Lipschitz in every other norm. *)
Theorem lipschitz_any_norm n D D' N1 N2 N1' N2' dom f K :
  token_norm n D N1 -> token_norm n D N2 -> token_norm n D' N1' -> token_norm n D' N2' ->
  0 <= K -> lipschitz_on dom N1 N1' f K -> exists K', 0 <= K' /\ lipschitz_on dom N2 N2' f K'.
Proof.
  intros H1 H2 H1' H2' K0 L.
  destruct (norms_equivalent n D N1 N2 H1 H2) as [c [c0 C]].
  destruct (norms_equivalent n D' N2' N1' H2' H1') as [c' [c'0 C']].
  exists (c' * (K * c)); split; [pos|]; intros x y Dx Dy.
  le_by C'; rewrite !Rmult_assoc; apply Rmult_le_compat_l; [auto|]; le_by L; apply Rmult_le_compat_l; auto.
Qed.
