(** Dot-product self-attention has no Lipschitz constant (Kim, Papamakarios and Mnih, ICML 2021,
    Theorem 3.1).  The lemma that shows it serves L2 attention with untied weights too. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Tokens Core.
Open Scope R_scope.

Lemma vmul_affine D h k p q W b :
  vmul D (fun a => h * p a + k * q a) W b = h * vmul D p W b + k * vmul D q W b.
Proof. unfold vmul; rewrite <- !rsum_scal, <- rsum_plus; apply rsum_ext; intros; ring. Qed.

Section Indifference.
Variables (n D D' : nat) (see : mask) (score : tokens -> nat -> nat -> R) (W : tokens).
Variables (N N' : tokens -> R) (i j o : nat) (v u : nat -> R) (p q r : R) (s0 : R -> R -> R).
Hypotheses (norm_in : token_norm n D N) (norm_out : token_norm n D' N').
Hypotheses (Hi : (i < n)%nat) (Hj : (j < n)%nat) (Ho : (o < D')%nat).
Hypotheses (ne : i <> j) (see_i : see i i = true) (see_j : see i j = true).

(** All tokens are at xi v but token j, which is t u away from them. *)
Definition one_apart xi t : tokens := fun l a => xi * v a + delta j l * t * u a.

(** Token i scores all tokens alike but token j, which it scores higher by an affine function of xi. *)
Definition rise xi t := t * (p * xi + q) - r * t^2.
Hypothesis scores : forall xi t l, score (one_apart xi t) i l = s0 xi t + delta j l * rise xi t.
Hypothesis p0 : p <> 0.
Hypothesis uW0 : vmul D u W o <> 0.

(** The number of tokens that i sees. *)
Let seen := rsum n (vis see i).

Lemma seen_ge2 : 2 <= seen.
Proof.
  replace 2 with (rsum n (fun l => delta i l * 1 + delta j l * 1))
    by (rewrite rsum_plus, (rsum_delta n i (fun _ => 1)), (rsum_delta n j (fun _ => 1)); auto; ring).
  apply rsum_le; intros l _; unfold vis.
  destruct (delta_cases i l) as [[<- ->]|[_ ->]]; [rewrite see_i, delta_diff by auto; lra|].
  destruct (delta_cases j l) as [[<- ->]|[_ ->]]; [rewrite see_j|destruct (see i l)]; lra.
Qed.

Lemma indifferent_output xi t (e := exp (rise xi t)) :
  rmul D W (attention n see score (one_apart xi t)) i o
  = xi * vmul D v W o + e / (e - 1 + seen) * t * vmul D u W o.
Proof.
  set (x := one_apart xi t); set (E := exp (s0 xi t)); assert (e0 : 0 < e) by apply exp_pos.
  assert (E0 : 0 < E) by apply exp_pos; assert (M := seen_ge2).
  assert (w : forall l, weight see score x i l = E * (vis see i l + delta j l * (e - 1))).
  { intros l; unfold weight, x, vis, E; rewrite scores, exp_plus.
    destruct (delta_cases j l) as [[<- ->]|[_ ->]];
      [rewrite see_j, (Rmult_1_l (rise _ _)); fold e|rewrite Rmult_0_l, exp_0]; ring. }
  unfold rmul; rewrite <- vmul_affine; f_equal; extensionality a; unfold attention, P, total.
  rewrite (rsum_ext n (weight see score x i) _ (fun l _ => w l)), rsum_scal, rsum_plus, rsum_delta by auto.
  fold seen; rewrite (rsum_ext n _ (fun l => / (E * (seen + (e - 1))) * E * (xi * v a * vis see i l
    + delta j l * (xi * v a * (e - 1) + (vis see i l + e - 1) * (t * u a))))).
  - rewrite rsum_scal, rsum_plus, rsum_scal, rsum_delta by auto; fold seen; unfold vis; rewrite see_j.
    field; lra.
  - intros l _; rewrite w; unfold x, one_apart, Rdiv.
    destruct (delta_cases j l) as [[<- ->]|[_ ->]]; ring.
Qed.

(** From where the rise is 0, a move of all tokens by v / (p t) makes it 1; the output of token i
    moves in proportion to t. *)
Lemma indifferent_not_lipschitz K :
  ~ lipschitz N N' (fun x => rmul D W (attention n see score x)) K.
Proof.
  intros L; destruct (entry_le_norm _ _ _ norm_out) as [b [b0 Hb]]; assert (M := seen_ge2).
  pose (e := exp 1); assert (e2 : 2 <= e) by (unfold e; generalize (exp_ineq1_le 1); lra).
  pose (g := e / (e - 1 + seen) - 1 / seen).
  assert (g0 : 0 < g).
  { unfold g; replace (_ - _) with ((e - 1) * (seen - 1) * / (seen * (e - 1 + seen))) by (field; lra).
    apply Rmult_lt_0_compat; [nra|apply Rinv_0_lt_compat; nra]. }
  pose (c := g * Rabs (vmul D u W o)).
  assert (c0 : 0 < c) by (apply Rmult_lt_0_compat; [|apply Rabs_pos_lt]; auto).
  pose (C := b * (K * (Rabs (/ p) * N (fun _ => v))) + Rabs (/ p * vmul D v W o)).
  pose (t := Rabs C / c + 1).
  assert (t1 : 1 <= t) by (unfold t; generalize (Rdiv_le_0_compat _ c (Rabs_pos C) c0); lra).
  assert (tc : C < t * c).
  { unfold t; replace ((_ + 1) * c) with (Rabs C + c) by (field; lra); generalize (Rle_abs C); lra. }
  pose (xi := (r * t - q) / p); pose (x := one_apart (xi + / (p * t)) t); pose (y := one_apart xi t).
  assert (E := Hb (tsub (rmul D W (attention n see score x)) (rmul D W (attention n see score y))) i o Hi Ho).
  assert (G := L x y I I).
  replace (tsub x y) with (scale (/ t) (scale (/ p) (fun _ => v))) in G
    by (extensionality l; extensionality a; unfold x, y, tsub, one_apart, scale; field; lra).
  rewrite !(norm_scale _ _ _ norm_in), (Rabs_pos_eq (/ t)) in G by (apply Rlt_le, Rinv_0_lt_compat; lra).
  unfold tsub at 1, x, y in E; rewrite !indifferent_output in E.
  replace (rise (xi + _) t) with 1 in E by (unfold rise, xi; field; lra).
  replace (rise xi t) with 0 in E by (unfold rise, xi; field; lra).
  rewrite exp_0 in E; fold e x y in E.
  replace (_ - _) with (/ t * (/ p * vmul D v W o + t * (t * (g * vmul D u W o)))) in E
    by (unfold g; field; lra).
  set (A := / p * vmul D v W o) in *; set (B := t * (t * _)) in E.
  assert (F : 1 * (t * c) <= Rabs B).
  { unfold B, c; rewrite !Rabs_mult, (Rabs_pos_eq t), (Rabs_pos_eq g) by lra.
    apply Rmult_le_compat_r; [fold c; nra|exact t1]. }
  assert (AB : Rabs (A + B) <= C - Rabs A).
  { apply Rmult_le_reg_l with (/ t); [apply Rinv_0_lt_compat; lra|].
    rewrite Rabs_mult, (Rabs_pos_eq (/ t)) in E by (apply Rlt_le, Rinv_0_lt_compat; lra).
    apply (Rle_trans _ _ _ E); eapply Rle_trans; [apply (Rmult_le_compat_l b _ _ b0 G)|].
    apply Req_le; unfold C; ring. }
  replace B with (A + B - A) in F by ring; generalize (Rabs_minus_le (A + B) A); lra.
Qed.
End Indifference.

Definition nonzero m n (A : tokens) := exists a b, (a < m)%nat /\ (b < n)%nat /\ A a b <> 0.

(** If A W_K^T <> 0 and W <> 0 then <v A, u W_K> <> 0 and u W <> 0 for some v and u. *)
Lemma directions D D' d A W_K W :
  nonzero D D (rmul d (transpose W_K) A) -> nonzero D D' W ->
  exists v u o, (o < D')%nat /\ vdot d (vmul D v A) (vmul D u W_K) <> 0 /\ vmul D u W o <> 0.
Proof.
  intros [a [b [Ha [Hb F]]]] [c [o [Hc [Ho G]]]]; set (f := rmul d (transpose W_K) A a) in *.
  assert (V : vmul D (delta a) A = A a)
    by (extensionality e; apply (rsum_delta D a (fun k => A k e)), Ha).
  assert (E : forall u, vdot d (A a) (vmul D u W_K) = vdot D u f)
    by (intros; rewrite vdot_comm; apply vdot_vmul).
  assert (B : forall k g, (k < D)%nat -> vdot D (delta k) g = g k) by (intros; apply rsum_delta; auto).
  assert (H : exists u, vdot D u f <> 0 /\ vdot D u (transpose W o) <> 0).
  { destruct (Req_dec (W b o) 0) as [Wb|Wb]; [|exists (delta b); rewrite !B; auto].
    destruct (Req_dec (f c) 0) as [fc|fc]; [|exists (delta c); rewrite !B; auto].
    exists (fun k => delta b k + delta c k); rewrite !vdot_plus, !B by auto; unfold transpose; lra. }
  destruct H as [u H]; exists (delta a), u, o; rewrite V, E; auto.
Qed.

(** Some token sees itself and another one. *)
Definition sees_two n (see : mask) :=
  exists i j, (i < n)%nat /\ (j < n)%nat /\ i <> j /\ see i i = true /\ see i j = true.

(** s <x_i W_Q + b_Q, x_j W_K + b_K> *)
Definition dot_score D d s (W_Q W_K : tokens) (b_Q b_K : nat -> R) (x : tokens) i j :=
  s * vdot d (fun c => vmul D (x i) W_Q c + b_Q c) (fun c => vmul D (x j) W_K c + b_K c).

(** Dot-product attention has no Lipschitz constant in any norms when W_Q W_K^T and the value map W are
    not 0, with any biases and any mask that shows some token itself and another one.  (A value bias
    moves all outputs alike and changes nothing.) *)
Theorem theorem_3_1_dot_product_not_lipschitz n D D' d see s W_Q W_K b_Q b_K W N N' K :
  sees_two n see -> s <> 0 -> nonzero D D (rmul d (transpose W_K) W_Q) -> nonzero D D' W ->
  token_norm n D N -> token_norm n D' N' ->
  ~ lipschitz N N' (fun x => rmul D W (attention n see (dot_score D d s W_Q W_K b_Q b_K) x)) K.
Proof.
  intros [i [j [Hi [Hj [ne [Si Sj]]]]]] s0 HA HW HN HN'.
  destruct (directions D D' d W_Q W_K W HA HW) as [v [u [o [Ho [U1 U2]]]]].
  pose (xQ := vmul D v W_Q); pose (xK := vmul D v W_K); set (k := vmul D u W_K) in *.
  apply (indifferent_not_lipschitz n D D' see _ W N N' i j o v u (s * vdot d xQ k) (s * vdot d b_Q k) 0
    (fun xi _ => s * vdot d (fun c => xi * xQ c + b_Q c) (fun c => xi * xK c + b_K c))); auto.
  intros xi t l; unfold dot_score, rise, one_apart, vdot.
  rewrite (rsum_ext d _ (fun c => (xi * xQ c + b_Q c) * (xi * xK c + b_K c)
    + delta j l * t * (xi * (xQ c * k c) + b_Q c * k c)))
    by (intros; rewrite !vmul_affine, (delta_diff j i) by auto; fold xQ xK k; ring).
  rewrite rsum_plus, rsum_scal, rsum_plus, rsum_scal; ring.
Qed.

Lemma dot_score_plain D d s W_Q W_K :
  dot_score D d s W_Q W_K (fun _ => 0) (fun _ => 0)
  = fun x i j => s * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K).
Proof.
  extensionality x; extensionality i; extensionality j; unfold dot_score; f_equal.
  apply rsum_ext; intros; ring.
Qed.

(** The setting of the paper: two tokens or more, no mask, no biases, scores divided by sqrt d. *)
Corollary paper_dot_product_not_lipschitz n D d (W_Q W_K W_V : tokens) N N' K
  (score := fun x i j => / sqrt (INR d) * vdot d (vmul D (x i) W_Q) (vmul D (x j) W_K)) :
  (2 <= n)%nat -> nonzero D D (rmul d (transpose W_K) W_Q) -> nonzero D d W_V ->
  token_norm n D N -> token_norm n d N' ->
  ~ lipschitz N N' (fun x => rmul D W_V (attention n all_tokens score x)) K.
Proof.
  intros n2 HA HW HN HN'; unfold score; rewrite <- dot_score_plain.
  apply theorem_3_1_dot_product_not_lipschitz with (D' := d); auto.
  - exists 0%nat, 1%nat; repeat split; auto; lia.
  - destruct d as [|d]; [destruct HA as [a [b [_ [_ H]]]]; elim H; reflexivity|].
    apply Rinv_neq_0_compat, Rgt_not_eq, sqrt_lt_R0, lt_0_INR; lia.
Qed.
