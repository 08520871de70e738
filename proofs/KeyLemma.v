(** The lemma behind Theorem 3.2 of Kim, Papamakarios and Mnih (ICML 2021). *)
From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Phi.
Open Scope R_scope.

(** (a - c) e^-a is largest at a = c + 1. *)
Lemma shifted_exp_max a c : (a - c) * exp (- a) <= exp (- (c + 1)).
Proof.
  replace (- (c + 1)) with ((a - c - 1) + (- a)) by ring; rewrite exp_plus.
  generalize (exp_ineq1_le (a - c - 1)) (exp_pos (- a)); nra.
Qed.

(** For all reals a_1 ... a_m, the sum of a e^-a over 1 + the sum of e^-a is at most W(m/e). *)
Theorem key_lemma m a :
  rsum m (fun j => a j * exp (- a j)) / (1 + rsum m (fun j => exp (- a j)))
  <= phi_inv (INR m).
Proof.
  set (c := phi_inv (INR m)).
  assert (S0 : 0 <= rsum m (fun j => exp (- a j)))
    by (apply rsum_ge0; intros; apply Rlt_le, exp_pos).
  assert (K : rsum m (fun j => (a j - c) * exp (- a j)) <= c).
  { apply Rle_trans with (INR m * exp (- (c + 1))).
    - rewrite <- rsum_const; apply rsum_le; intros; apply shifted_exp_max.
    - apply Req_le, phi_inv_root, pos_INR. }
  rewrite (rsum_ext _ _ (fun j => a j * exp (- a j) - c * exp (- a j))) in K by (intros; ring).
  rewrite rsum_minus, rsum_scal in K; apply Rle_div_l; lra.
Qed.

(** The bound is attained: by all a_j = 1 + W(m/e). *)
Theorem key_lemma_attained m (c := phi_inv (INR m)) :
  rsum m (fun j => (1 + c) * exp (- (1 + c))) / (1 + rsum m (fun j => exp (- (1 + c)))) = c.
Proof.
  assert (C0 : 0 <= c) by apply phi_inv_ge0.
  assert (E : INR m * exp (- (1 + c)) = c)
    by (unfold c; rewrite Rplus_comm; apply phi_inv_root, pos_INR).
  rewrite !rsum_const, E, <- Rmult_assoc, (Rmult_comm (INR m)), Rmult_assoc, E; field; lra.
Qed.
