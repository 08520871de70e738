(** The lemma behind Theorem 3.2 of Kim, Papamakarios and Mnih (ICML 2021). *)
From Lipsa Require Import Sums Phi.

(** (a - c) e^-a is largest at a = c + 1. *)
Lemma shifted_exp_max a c : (a - c) * exp (- a) <= exp (- (c + 1)).
Proof.
  replace (- (c + 1)) with ((a - c - 1) + (- a)) by ring; rewrite exp_plus.
  apply Rmult_le_compat_r; [pos|]; generalize (exp_ineq1_le (a - c - 1)); lra.
Qed.

(** For all reals a_1 ... a_m, the sum of a e^-a over 1 + the sum of e^-a is at most W(m/e). *)
Theorem key_lemma m a :
  rsum m (fun j => a j * exp (- a j)) / (1 + rsum m (fun j => exp (- a j))) <= phi_inv (INR m).
Proof.
  set (c := phi_inv (INR m)); assert (0 <= rsum m (fun j => exp (- a j))) by pos.
  assert (K : rsum m (fun j => (a j - c) * exp (- a j)) <= c).
  { apply Rle_trans with (rsum m (fun _ => exp (- (c + 1)))).
    - apply rsum_le; intros; apply shifted_exp_max.
    - rewrite rsum_const; apply Req_le, phi_inv_root; pos. }
  replace (rsum m _) with (rsum m (fun j => a j * exp (- a j)) - c * rsum m (fun j => exp (- a j))) in K
    by sum_ring; apply Rle_div_l; lra.
Qed.

(** The bound is attained: by all a_j = 1 + W(m/e). *)
Theorem key_lemma_attained m (c := phi_inv (INR m)) :
  rsum m (fun j => (1 + c) * exp (- (1 + c))) / (1 + rsum m (fun j => exp (- (1 + c)))) = c.
Proof.
  assert (C0 : 0 <= c) by (unfold c; pos).
  assert (E : INR m * exp (- (1 + c)) = c) by (unfold c; rewrite Rplus_comm; apply phi_inv_root; pos).
  rewrite rsum_scal, !rsum_const, E; field; lra.
Qed.
