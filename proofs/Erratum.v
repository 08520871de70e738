(** The 2-norm formula of Theorem 3.2 as printed is false: it is of degree 1 in W_Q, the layer of degree 2. *)
From Lipsa Require Import Sums Phi Tokens Core Heads MultiHead.

(** sqrt n / sqrt d (4 c + 1) sqrt(sum_h |W_Q^h|_2^2 |W_V^h|_2^2) |W_O|_2 as printed, c = W((n-1)/e). *)
Definition printed_2 n d H c (q v : nat -> R) o :=
  sqrt (INR n) / sqrt (INR d) * (4 * c + 1) * sqrt (rsum H (fun h => (q h)^2 * (v h)^2)) * o.

(** One head of one feature, W_Q = q, W_V = W_O = 1, s = 1/sqrt d = 1. *)
Definition one_feature n q :=
  l2_multihead n 1 1 1 1 all_tokens 1 (fun _ _ _ => q) (fun _ _ _ => 1) (fun _ _ _ => 1).

Lemma one_feature_constant n q t i : (i < n)%nat -> one_feature n q (fun _ _ => t) i 0%nat = q^2 * t.
Proof.
  intros Hi; unfold one_feature, l2_multihead, heads_concat, l2_head, rmul, vmul, A, scale, attention; simpl.
  rewrite (rsum_scal_r n t), P_sum by eauto using self_row, all_self.
  unfold rmul, vmul, transpose; simpl; field.
Qed.

(** Equal tokens stay equal and are multiplied by W_Q^2, so no constant is below W_Q^2. *)
Theorem one_feature_lower n q K : (1 <= n)%nat ->
  lipschitz (norm_2 n 1) (norm_2 n 1) (one_feature n q) K -> q^2 <= K.
Proof.
  intros Hn L; specialize (L (fun _ _ => 1) (fun _ _ => 0) I I).
  assert (E : forall x r, (forall i, (i < n)%nat -> x i O = r) -> 0 <= r -> norm_2 n 1 x = sqrt (INR n) * r).
  { intros x r H r0; unfold norm_2 at 1, vnorm at 1; rewrite vdot_sq.
    rewrite (rsum_ext n _ (fun _ => r^2)); [rewrite rsum_const, sqrt_mult, sqrt_pow2 by pos; auto|].
    intros; rewrite vnorm_sq; unfold vdot; simpl; rewrite H by auto; ring. }
  rewrite (E _ (q^2)), (E _ 1), (Rmult_comm K) in L by
    (intros; unfold tsub; rewrite ?one_feature_constant by auto; ring || pos).
  rewrite Rmult_1_r in L; apply Rmult_le_reg_l with (2 := L), sqrt_lt_R0, lt_0_INR; lia.
Qed.

(** The printed formula is below the truth wherever |W_Q|_2 > sqrt n (4 c + 1). *)
Theorem printed_2_false n q (c := phi_inv (INR (n - 1))) : (1 <= n)%nat -> sqrt (INR n) * (4 * c + 1) < q ->
  ~ lipschitz (norm_2 n 1) (norm_2 n 1) (one_feature n q) (printed_2 n 1 1 c (fun _ => q) (fun _ => 1) 1).
Proof.
  intros Hn Hq L; apply one_feature_lower in L; [|auto].
  assert (q0 : 0 <= sqrt (INR n) * (4 * c + 1)) by (unfold c; pos).
  unfold printed_2 in L; replace (rsum 1 _) with (q * q) in L by (simpl; ring); simpl (INR 1) in L.
  rewrite sqrt_1, sqrt_square in L by lra; nra.
Qed.

(** Two tokens and W_Q = 5: the constant is at least 25, the printed formula below 21.3 both with
    c = W(1/e), the proof's value, and with W(2/e), the value printed. *)
Theorem printed_2_counterexample :
  (forall K, lipschitz (norm_2 2 1) (norm_2 2 1) (one_feature 2 5) K -> 25 <= K) /\
  printed_2 2 1 1 (phi_inv 1) (fun _ => 5) (fun _ => 1) 1 < 21.3 /\
  printed_2 2 1 1 (phi_inv 2) (fun _ => 5) (fun _ => 1) 1 < 21.3.
Proof.
  split; [intros K L; apply one_feature_lower in L; [lra|lia]|].
  assert (C : forall y, 0 <= y <= 2 -> printed_2 2 1 1 (phi_inv y) (fun _ => 5) (fun _ => 1) 1 < 21.3).
  { intros y Hy; assert (phi_inv y <= 1 / 2).
    { apply phi_inv_le; [lra|lra|]; unfold phi.
      replace (1 / 2 + 1) with (12 * (1 / 8)) by lra.
      assert (E : (9 / 8)^12 <= exp (12 * (1 / 8))).
      { replace (exp (12 * (1 / 8))) with (exp (1 / 8) ^ 12)
          by (simpl; rewrite Rmult_1_r, <- !exp_plus; f_equal; lra).
        apply pow_incr; generalize (exp_ineq1_le (1 / 8)); lra. }
      simpl in E; lra. }
    assert (S2 : sqrt 2 < 1.42) by (rewrite <- (sqrt_square 1.42) by lra; apply sqrt_lt_1; lra).
    unfold printed_2; replace (rsum 1 _) with (5 * 5) by (simpl; ring); simpl (INR 1); simpl (INR 2).
    rewrite sqrt_1, sqrt_square by lra; replace (1 + 1) with 2 by ring.
    generalize (phi_inv_ge0 y) (sqrt_pos 2); nra. }
  split; apply C; lra.
Qed.
