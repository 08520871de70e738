(** phi(x) = x e^(x+1), strictly increasing on [0, oo), and its inverse:
    phi_inv y = W(y/e) with W the principal branch of Lambert's function. *)
From Lipsa Require Import Sums.

Definition phi (x : R) : R := x * exp (x + 1).

Lemma phi_0 : phi 0 = 0.
Proof. unfold phi; ring. Qed.

Lemma phi_continuous x : continuity_pt phi x.
Proof.
  apply continuity_pt_filterlim, (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)).
  unfold phi; auto_derive; auto.
Qed.

Lemma phi_ge_id x : 0 <= x -> x <= phi x.
Proof. intros H; unfold phi; generalize (exp_ineq1_le (x + 1)); nra. Qed.

Lemma phi_increasing x y : 0 <= x < y -> phi x < phi y.
Proof.
  intros [H0 H]; unfold phi; apply Rle_lt_trans with (x * exp (y + 1)).
  - apply Rmult_le_compat_l, Rlt_le, exp_increasing; lra.
  - apply Rmult_lt_compat_r; pos.
Qed.

Lemma phi_le_reg x y : 0 <= y -> phi x <= phi y -> x <= y.
Proof.
  intros Y H; destruct (Rle_lt_dec x y) as [|L]; [auto|]; generalize (phi_increasing y x (conj Y L)); lra.
Qed.

Lemma phi_surjective y : 0 <= y -> {x : R | 0 <= x /\ phi x = y}.
Proof.
  intros H; destruct (IVT_gen phi 0 y y) as [x [[Hx _] E]].
  - exact phi_continuous.
  - assert (L := phi_ge_id y H); rewrite phi_0, Rmin_left, Rmax_right; lra.
  - exists x; rewrite Rmin_left in Hx; auto.
Qed.

(** The inverse, 0 on the negative half line. *)
Definition phi_inv (y : R) : R := proj1_sig (phi_surjective (Rmax 0 y) (Rmax_l 0 y)).

Lemma phi_inv_ge0 y : 0 <= phi_inv y.
Proof. apply (proj2_sig (phi_surjective (Rmax 0 y) _)). Qed.
#[global] Hint Resolve phi_inv_ge0 : pos.

Lemma phi_phi_inv y : 0 <= y -> phi (phi_inv y) = y.
Proof. intros H; eapply eq_trans; [apply (proj2_sig (phi_surjective (Rmax 0 y) _))|apply Rmax_right, H]. Qed.

(** y e^-(c+1) = c for c = phi_inv y. *)
Lemma phi_inv_root y : 0 <= y -> y * exp (- (phi_inv y + 1)) = phi_inv y.
Proof.
  intros H; rewrite <- (phi_phi_inv y H) at 1; unfold phi.
  rewrite Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0; ring.
Qed.

Lemma phi_inv_le y b : 0 <= y -> 0 <= b -> y <= phi b -> phi_inv y <= b.
Proof. intros; apply phi_le_reg; rewrite ?phi_phi_inv; auto. Qed.
Lemma phi_inv_ge y a : 0 <= y -> phi a <= y -> a <= phi_inv y.
Proof. intros; apply phi_le_reg; rewrite ?phi_phi_inv; pos. Qed.

Lemma phi_inv_phi x : 0 <= x -> phi_inv (phi x) = x.
Proof.
  intros H; assert (L := phi_ge_id x H); apply Rle_antisym; [apply phi_inv_le|apply phi_inv_ge]; lra.
Qed.

Lemma phi_inv_0 : phi_inv 0 = 0.
Proof. rewrite <- phi_0 at 1; apply phi_inv_phi; lra. Qed.

Lemma phi_inv_monotone y z : 0 <= y <= z -> phi_inv y <= phi_inv z.
Proof. intros [Y H]; apply phi_inv_le; [| |rewrite phi_phi_inv]; pos. Qed.

(** For every y >= 0 the equation x e^(x+1) = y has exactly one root x >= 0. *)
Theorem phi_inv_unique y : 0 <= y -> exists! x, 0 <= x /\ phi x = y.
Proof.
  intros H; exists (phi_inv y); split; [auto using phi_inv_ge0, phi_phi_inv|].
  intros x [Hx E]; rewrite <- E; apply phi_inv_phi, Hx.
Qed.
