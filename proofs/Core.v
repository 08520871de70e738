(** Attention with any scores and mask, its derivative, and the core map of L2 attention. *)
From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Lipsa Require Import Sums Phi KeyLemma Tokens.
Open Scope R_scope.

(** see i j: token i attends to token j. *)
Definition mask := nat -> nat -> bool.
Definition all_tokens : mask := fun _ _ => true.
Definition causal : mask := fun i j => Nat.leb j i.
Definition vis (see : mask) i j : R := if see i j then 1 else 0.

Lemma vis_cases see i j : vis see i j = 0 \/ vis see i j = 1.
Proof. unfold vis; destruct (see i j); auto. Qed.

Lemma vis_ge0 see i j : 0 <= vis see i j.
Proof. destruct (vis_cases see i j) as [-> | ->]; lra. Qed.

Lemma vis_le1 see i j : vis see i j <= 1.
Proof. destruct (vis_cases see i j) as [-> | ->]; lra. Qed.

(** ** Attention with scores S(X): P = the softmax of the rows of S(X), f(X) = P X *)

Section Attention.
Variables (n D : nat) (see : mask) (score : tokens -> nat -> nat -> R).

Definition weight (x : tokens) i j := vis see i j * exp (score x i j).
Definition total (x : tokens) i := rsum n (weight x i).
Definition P (x : tokens) i j := weight x i j / total x i.
Definition attention (x : tokens) : tokens := fun i a => rsum n (fun j => P x i j * x j a).

(** No row of the mask is empty. *)
Hypothesis row : forall i, (i < n)%nat -> exists j, (j < n)%nat /\ see i j = true.

Lemma weight_ge0 x i j : 0 <= weight x i j.
Proof. apply Rmult_le_pos; [apply vis_ge0|apply Rlt_le, exp_pos]. Qed.

Lemma total_pos x i : (i < n)%nat -> 0 < total x i.
Proof.
  intros Hi; destruct (row i Hi) as [j [Hj E]].
  apply Rlt_le_trans with (weight x i j).
  - unfold weight, vis; rewrite E, Rmult_1_l; apply exp_pos.
  - apply (rsum_ge_term n (weight x i) j Hj); intros; apply weight_ge0.
Qed.

Lemma P_ge0 x i j : (i < n)%nat -> 0 <= P x i j.
Proof.
  intros Hi; apply Rmult_le_pos; [apply weight_ge0|].
  apply Rlt_le, Rinv_0_lt_compat, total_pos, Hi.
Qed.

Lemma P_sum x i : (i < n)%nat -> rsum n (P x i) = 1.
Proof.
  intros Hi; generalize (total_pos x i Hi); intros T; unfold P, Rdiv.
  rewrite rsum_scal_r; apply Rinv_r; fold (total x i); lra.
Qed.

Lemma P_le1 x i j : (i < n)%nat -> (j < n)%nat -> P x i j <= 1.
Proof.
  intros Hi Hj; rewrite <- (P_sum x i Hi); apply (rsum_ge_term n (P x i)); auto.
  intros; apply P_ge0, Hi.
Qed.

Lemma P_le_vis x i j : (i < n)%nat -> (j < n)%nat -> P x i j <= vis see i j.
Proof.
  intros Hi Hj; destruct (vis_cases see i j) as [E|E]; [|rewrite E; apply P_le1; auto].
  unfold P, weight; rewrite E; unfold Rdiv; lra.
Qed.

(** The derivative of the scores at x along v. *)
Variable dscore : tokens -> tokens -> nat -> nat -> R.
Hypothesis score_derivative : forall x v i j t,
  is_derive (fun u => score (line x v u) i j) t (dscore (line x v t) v i j).

(** J(x) v = P v + sum_j P_ij (x_j - m_i) dS_ij with m = P x. *)
Definition jvp (x v : tokens) : tokens := fun i a =>
  rsum n (fun j => P x i j * v j a)
  + rsum n (fun j => P x i j * ((x j a - attention x i a) * dscore x v i j)).

(** <w, (J v)_i> = sum_j P_ij (<w, v_j> + <w, x_j - m_i> dS_ij). *)
Lemma vdot_jvp x v i w : vdot D w (jvp x v i) = rsum n (fun j => P x i j *
    (vdot D w (v j) + (vdot D w (x j) - vdot D w (attention x i)) * dscore x v i j)).
Proof.
  rewrite (rsum_ext n _ (fun j => rsum D (fun a => w a * (P x i j * v j a
    + P x i j * ((x j a - attention x i a) * dscore x v i j))))).
  - rewrite rsum_swap; apply rsum_ext; intros; rewrite rsum_scal, rsum_plus; reflexivity.
  - intros; unfold vdot; rewrite <- rsum_minus, <- rsum_scal_r, <- rsum_plus, <- rsum_scal.
    apply rsum_ext; intros; ring.
Qed.

(** jvp is the derivative of attention along every line. *)
Theorem attention_derivative x v i a t :
  (i < n)%nat ->
  is_derive (fun u => attention (line x v u) i a) t (jvp (line x v t) v i a).
Proof.
  intros Hi; set (y := line x v t).
  pose (W' := fun j => weight y i j * dscore y v i j).
  assert (DW : forall j, is_derive (fun u => weight (line x v u) i j) t (W' j)).
  { intros j; unfold W', weight; rewrite Rmult_assoc.
    apply (is_derive_scal (fun u => exp (score (line x v u) i j))).
    assert (E : is_derive exp (score y i j) (exp (score y i j)))
      by (apply is_derive_Reals, derivable_pt_lim_exp).
    assert (C := is_derive_comp exp (fun u => score (line x v u) i j) t _ _ E
      (score_derivative x v i j t)).
    fold y in C; rewrite Rmult_comm; exact C. }
  assert (DN : forall j, is_derive (fun u => weight (line x v u) i j * line x v u j a) t
                           (W' j * y j a + weight y i j * v j a)).
  { intros j.
    apply (is_derive_mult (fun u => weight (line x v u) i j) (fun u => line x v u j a) t).
    - apply DW.
    - unfold line; auto_derive; [trivial|ring].
    - intros; apply Rmult_comm. }
  assert (T := total_pos y i Hi).
  assert (Q := is_derive_div _ _ t _ _
    (is_derive_rsum n _ _ t (fun j _ => DN j)) (is_derive_rsum n _ _ t (fun j _ => DW j))).
  cbv beta in Q; fold y in Q; fold (total y i) in Q.
  assert (A : forall z, attention z i a = rsum n (fun j => weight z i j * z j a) / total z i).
  { intros z; unfold attention, P, Rdiv; rewrite <- rsum_scal_r; apply rsum_ext; intros; ring. }
  apply (is_derive_ext (fun u => rsum n (fun j => weight (line x v u) i j * line x v u j a)
                                 / rsum n (weight (line x v u) i))).
  { intros u; symmetry; apply A. }
  replace (jvp y v i a) with
    ((rsum n (fun j => W' j * y j a + weight y i j * v j a) * total y i
      - rsum n (fun j => weight y i j * y j a) * rsum n W') / total y i ^ 2).
  - apply Q; change (total y i <> 0); lra.
  - unfold jvp; rewrite A, rsum_plus.
    rewrite (rsum_ext n (fun j => P y i j * v j a) (fun j => weight y i j * v j a * / total y i))
      by (intros; unfold P, Rdiv; ring).
    rewrite (rsum_ext n (fun j => P y i j * _)
      (fun j => (W' j * y j a - rsum n (fun j => weight y i j * y j a) / total y i * W' j) * / total y i))
      by (intros; unfold P, W', Rdiv; ring).
    rewrite !rsum_scal_r, rsum_minus, rsum_scal; field; lra.
Qed.

(** <w, f(x) - f(y)> = <w, J(z) (x - y)> at a point z of the segment from y to x. *)
Theorem mean_value w x y : exists t, 0 <= t <= 1 /\
  dot n D w (tsub (attention x) (attention y))
  = dot n D w (jvp (line y (tsub x y) t) (tsub x y)).
Proof.
  set (v := tsub x y); pose (g := fun t => dot n D w (attention (line y v t))).
  assert (G : forall t, is_derive g t (dot n D w (jvp (line y v t) v))).
  { intros t; apply is_derive_rsum; intros i Hi; apply is_derive_rsum; intros a _.
    apply (is_derive_scal (fun u => attention (line y v u) i a)); apply attention_derivative, Hi. }
  destruct (MVT_gen g 0 1 (fun t => dot n D w (jvp (line y v t) v))) as [t [[T0 T1] Q]].
  - intros t _; apply G.
  - intros t _; apply continuity_pt_filterlim.
    apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)); eexists; apply G.
  - rewrite Rmin_left, Rmax_right in * by lra; exists t; split; [auto|].
    rewrite Rminus_0_r, Rmult_1_r in Q; rewrite <- Q; unfold g, v; rewrite line_1, line_0.
    unfold dot; rewrite <- rsum_minus; apply rsum_ext; intros i _.
    rewrite !(vdot_comm D (w i)), <- vdot_minus; reflexivity.
Qed.

(** A bound on J in each norm, on a convex domain, is a Lipschitz constant there. *)
Section Lipschitz.
Variables (dom : tokens -> Prop) (K : R).
Hypothesis convex : forall x y t, dom x -> dom y -> 0 <= t <= 1 -> dom (line y (tsub x y) t).
Hypothesis K0 : 0 <= K.

Lemma lipschitz_inf :
  (forall z v i a, dom z -> (i < n)%nat -> (a < D)%nat -> Rabs (jvp z v i a) <= K * norm_inf n D v) ->
  lipschitz_on dom (norm_inf n D) (norm_inf n D) attention K.
Proof.
  intros H x y Dx Dy; apply norm_inf_le; [apply Rmult_le_pos; [auto|apply norm_inf_ge0]|].
  intros i a Hi Ha.
  destruct (mean_value (fun k b => delta i k * delta a b) x y) as [t [T Q]].
  assert (E : forall z, dot n D (fun k b => delta i k * delta a b) z = z i a).
  { intros z; unfold dot, vdot.
    rewrite (rsum_ext n _ (fun k => delta i k * rsum D (fun b => delta a b * z k b)))
      by (intros; rewrite <- rsum_scal; apply rsum_ext; intros; ring).
    rewrite rsum_delta, rsum_delta; auto. }
  rewrite !E in Q; rewrite Q; apply H; auto.
Qed.

Lemma lipschitz_2 :
  (forall z v w, dom z -> dot n D w (jvp z v) <= K * norm_2 n D v * norm_2 n D w) ->
  lipschitz_on dom (norm_2 n D) (norm_2 n D) attention K.
Proof.
  intros H x y Dx Dy; apply norm_2_dual; [apply Rmult_le_pos; [auto|apply norm_2_ge0]|].
  intros w; destruct (mean_value w x y) as [t [T ->]]; apply H; auto.
Qed.

Lemma lipschitz_token_sum :
  (forall z v w, dom z -> (forall i, (i < n)%nat -> vnorm D (w i) <= 1) ->
    dot n D w (jvp z v) <= K * token_sum n D v) ->
  lipschitz_on dom (token_sum n D) (token_sum n D) attention K.
Proof.
  intros H x y Dx Dy; apply token_sum_dual; intros w Hw.
  destruct (mean_value w x y) as [t [T ->]]; apply H; auto.
Qed.

Lemma lipschitz_token_max :
  (forall z v i w, dom z -> (i < n)%nat -> vdot D w (jvp z v i) <= K * token_max n D v * vnorm D w) ->
  lipschitz_on dom (token_max n D) (token_max n D) attention K.
Proof.
  intros H x y Dx Dy; apply token_max_dual; [apply Rmult_le_pos; [auto|apply rmax_ge0]|].
  intros i w Hi; destruct (mean_value (fun k b => delta i k * w b) x y) as [t [T Q]].
  assert (E : forall z, dot n D (fun k b => delta i k * w b) z = vdot D w (z i)).
  { intros z; unfold dot.
    rewrite (rsum_ext n _ (fun k => delta i k * vdot D w (z k)))
      by (intros; apply vdot_scal).
    rewrite rsum_delta; auto. }
  rewrite !E in Q; rewrite Q; apply H; auto.
Qed.
End Lipschitz.
End Attention.

Lemma everywhere_convex x y t : everywhere x -> everywhere y -> 0 <= t <= 1 ->
  everywhere (line y (tsub x y) t).
Proof. intros; exact I. Qed.

(** ** The core map g(Z) = P Z, P_ij proportional to e^-|z_i - z_j|^2 *)

Definition sqdist d (z : tokens) i j := (vnorm d (fun a => z i a - z j a))^2.
Definition l2_score d (z : tokens) i j := - sqdist d z i j.
Definition l2_dscore d (z v : tokens) i j :=
  - (2 * vdot d (fun a => z i a - z j a) (fun a => v i a - v j a)).
Definition core n d see := attention n see (l2_score d).

Lemma sqdist_ge0 d z i j : 0 <= sqdist d z i j.
Proof. apply pow2_ge_0. Qed.

Lemma sqdist_same d z i : sqdist d z i i = 0.
Proof.
  unfold sqdist; rewrite vnorm_sq; unfold vdot.
  rewrite (rsum_ext d _ (fun _ => 0)) by (intros; ring); apply rsum_0.
Qed.

Lemma sqdist_sym d z i j : sqdist d z i j = sqdist d z j i.
Proof. unfold sqdist; rewrite !vnorm_sq; apply rsum_ext; intros; ring. Qed.

Lemma l2_score_derivative d x v i j t :
  is_derive (fun u => l2_score d (line x v u) i j) t (l2_dscore d (line x v t) v i j).
Proof.
  apply (is_derive_opp (fun u => sqdist d (line x v u) i j)).
  apply (is_derive_ext (fun u => rsum d (fun a => (line x v u i a - line x v u j a)^2))).
  { intros u; unfold sqdist; rewrite vnorm_sq, vdot_sq; reflexivity. }
  unfold vdot; rewrite <- rsum_scal; apply is_derive_rsum; intros a _.
  unfold line; auto_derive; [trivial|ring].
Qed.

Section Core.
Variables (n d : nat) (see : mask).

(** Every token sees itself and at most k others. *)
Definition sees_self := forall i, (i < n)%nat -> see i i = true.
Definition others_seen k := forall i, (i < n)%nat -> rsum n (vis see i) <= 1 + k.

Hypothesis self : sees_self.
Variable k : R.
Hypothesis k0 : 0 <= k.
Hypothesis others : others_seen k.

Lemma self_row i : (i < n)%nat -> exists j, (j < n)%nat /\ see i j = true.
Proof. intros Hi; exists i; auto. Qed.

Lemma vis_self i : (i < n)%nat -> vis see i i = 1.
Proof. intros Hi; unfold vis; rewrite self; auto. Qed.

(** A bound V on the mean of F under row i: what token i itself leaves pays for the others. *)
Lemma row_mean_le z i F V B :
  (i < n)%nat -> 0 <= B -> F i + k * B <= V ->
  (forall j, (j < n)%nat -> exp (l2_score d z i j) * (F j - V) <= B) ->
  rsum n (fun j => P n see (l2_score d) z i j * F j) <= V.
Proof.
  intros Hi B0 HV HB.
  assert (T := total_pos n see (l2_score d) self_row z i Hi).
  assert (S : rsum n (fun j => weight see (l2_score d) z i j * (F j - V)) <= 0).
  { apply Rle_trans with (rsum n (fun j => vis see i j * B + delta i j * (F i - V - B))).
    - apply rsum_le; intros j Hj; specialize (HB j Hj); unfold weight; rewrite Rmult_assoc.
      destruct (delta_cases i j) as [[<- ->]|[_ ->]].
      + rewrite vis_self by auto; unfold l2_score; rewrite sqdist_same, Ropp_0, exp_0; lra.
      + destruct (vis_cases see i j) as [-> | ->]; lra.
    - rewrite rsum_plus, rsum_scal_r, (rsum_delta n i (fun _ => F i - V - B)) by auto.
      generalize (others i Hi); nra. }
  rewrite (rsum_ext n _ (fun j => weight see (l2_score d) z i j * (F j - V)
      * / total n see (l2_score d) z i + V * P n see (l2_score d) z i j))
    by (intros; unfold P; field; lra).
  rewrite rsum_plus, rsum_scal_r, rsum_scal.
  change (rsum n (fun j => P n see (l2_score d) z i j)) with (rsum n (P n see (l2_score d) z i)).
  rewrite P_sum by auto using self_row.
  assert (0 < / total n see (l2_score d) z i) by (apply Rinv_0_lt_compat; auto); nra.
Qed.

(** sum_j P_ij |z_i - z_j|^2 <= W(k/e), k the number of other tokens seen. *)
Theorem row_moment_le z i :
  (i < n)%nat -> rsum n (fun j => P n see (l2_score d) z i j * sqdist d z i j) <= phi_inv k.
Proof.
  intros Hi; apply (row_mean_le z i _ _ (exp (- (phi_inv k + 1)))); auto.
  - apply Rlt_le, exp_pos.
  - rewrite sqdist_same, phi_inv_root; lra.
  - intros j _; rewrite Rmult_comm; apply shifted_exp_max.
Qed.
End Core.

Lemma all_self n : sees_self n all_tokens.
Proof. intros i _; reflexivity. Qed.

Lemma all_others n : others_seen n all_tokens (INR (n - 1)).
Proof.
  intros i Hi; unfold vis, all_tokens; rewrite rsum_const, minus_INR by lia; simpl; lra.
Qed.
