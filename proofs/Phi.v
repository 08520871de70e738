(** phi(x) = x e^(x+1), strictly increasing on [0, oo), and its inverse:
    phi_inv y = W(y/e) with W the principal branch of Lambert's function. *)
From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Definition phi (x : R) : R := x * exp (x + 1).

Lemma phi_0 : phi 0 = 0.
Proof. unfold phi; ring. Qed.

Lemma phi_continuous x : continuity_pt phi x.
Proof.
  apply continuity_pt_filterlim.
  apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)).
  unfold phi; auto_derive; auto.
Qed.

Lemma phi_increasing x y : 0 <= x < y -> phi x < phi y.
Proof.
  intros [H0 H]; unfold phi.
  assert (exp (x + 1) < exp (y + 1)) by (apply exp_increasing; lra).
  generalize (exp_pos (x + 1)); nra.
Qed.

Lemma phi_ge_id x : 0 <= x -> x <= phi x.
Proof. intros H; unfold phi; generalize (exp_ineq1_le (x + 1)); nra. Qed.

Lemma phi_surjective y : 0 <= y -> {x : R | 0 <= x /\ phi x = y}.
Proof.
  intros H; destruct (IVT_gen phi 0 y y) as [x [[Hx _] E]].
  - exact phi_continuous.
  - assert (y <= phi y) by (apply phi_ge_id; lra).
    rewrite phi_0, Rmin_left, Rmax_right; lra.
  - exists x; rewrite Rmin_left in Hx by lra; auto.
Qed.

(** The inverse, 0 on the negative half line. *)
Definition phi_inv (y : R) : R :=
  match Rle_dec 0 y with left H => proj1_sig (phi_surjective y H) | right _ => 0 end.

Lemma phi_inv_ge0 y : 0 <= phi_inv y.
Proof.
  unfold phi_inv; destruct (Rle_dec 0 y) as [H|]; [|lra].
  apply (proj2_sig (phi_surjective y H)).
Qed.

Lemma phi_phi_inv y : 0 <= y -> phi (phi_inv y) = y.
Proof.
  intros H; unfold phi_inv; destruct (Rle_dec 0 y) as [H'|]; [|contradiction].
  apply (proj2_sig (phi_surjective y H')).
Qed.

(** y e^-(c+1) = c for c = phi_inv y. *)
Lemma phi_inv_root y : 0 <= y -> y * exp (- (phi_inv y + 1)) = phi_inv y.
Proof.
  intros H; rewrite <- (phi_phi_inv y H) at 1; unfold phi.
  rewrite Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0; ring.
Qed.

Lemma phi_inv_le y b : 0 <= y -> 0 <= b -> y <= phi b -> phi_inv y <= b.
Proof.
  intros Y B H; destruct (Rle_lt_dec (phi_inv y) b) as [|L]; [auto|].
  assert (phi b < phi (phi_inv y)) by (apply phi_increasing; lra).
  rewrite phi_phi_inv in *; lra.
Qed.

Lemma phi_inv_ge y a : 0 <= y -> 0 <= a -> phi a <= y -> a <= phi_inv y.
Proof.
  intros Y A H; destruct (Rle_lt_dec a (phi_inv y)) as [|L]; [auto|].
  assert (phi (phi_inv y) < phi a)
    by (apply phi_increasing; split; [apply phi_inv_ge0|auto]).
  rewrite phi_phi_inv in *; lra.
Qed.

Lemma phi_inv_phi x : 0 <= x -> phi_inv (phi x) = x.
Proof.
  intros H; assert (0 <= phi x) by (generalize (phi_ge_id x H); lra).
  apply Rle_antisym; [apply phi_inv_le|apply phi_inv_ge]; lra.
Qed.

Lemma phi_inv_0 : phi_inv 0 = 0.
Proof. rewrite <- phi_0 at 1; apply phi_inv_phi; lra. Qed.

Lemma phi_inv_monotone y z : 0 <= y <= z -> phi_inv y <= phi_inv z.
Proof.
  intros [Y H]; apply phi_inv_le; [auto|apply phi_inv_ge0|]; rewrite phi_phi_inv; lra.
Qed.

(** For every y >= 0 the equation x e^(x+1) = y has exactly one root x >= 0. *)
Theorem phi_inv_unique y : 0 <= y -> exists! x, 0 <= x /\ phi x = y.
Proof.
  intros H; exists (phi_inv y); split; [split; [apply phi_inv_ge0|apply phi_phi_inv, H]|].
  intros x [Hx E]; rewrite <- E; apply phi_inv_phi, Hx.
Qed.
