(** Attention with any scores and mask, its derivative, and the core map of L2 attention. *)
From Lipsa Require Import Sums Phi KeyLemma Tokens.

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
#[global] Hint Resolve vis_ge0 vis_le1 : pos.

(** Every token sees something. *)
Definition nonempty_rows n (see : mask) := forall i, (i < n)%nat -> exists j, (j < n)%nat /\ see i j = true.

(** ** Attention with scores S(X): P = the softmax of the rows of S(X), f(X) = P X *)

Section Attention.
Variables (n D : nat) (see : mask) (score : tokens -> nat -> nat -> R).

Definition weight (x : tokens) i j := vis see i j * exp (score x i j).
Definition total (x : tokens) i := rsum n (weight x i).
Definition P (x : tokens) i j := weight x i j / total x i.
Definition attention (x : tokens) : tokens := fun i a => rsum n (fun j => P x i j * x j a).

Hypothesis row : nonempty_rows n see.

Lemma weight_ge0 x i j : 0 <= weight x i j.
Proof. unfold weight; pos. Qed.
Local Hint Resolve weight_ge0 : pos.

Lemma total_pos x i : (i < n)%nat -> 0 < total x i.
Proof.
  intros Hi; destruct (row i Hi) as [j [Hj E]]; apply Rlt_le_trans with (weight x i j).
  - unfold weight, vis; rewrite E, Rmult_1_l; pos.
  - apply (rsum_ge_term n (weight x i) j Hj); pos.
Qed.
Local Hint Resolve total_pos : pos.

Lemma P_ge0 x i j : (i < n)%nat -> 0 <= P x i j.
Proof. unfold P; pos. Qed.

Lemma P_sum x i : (i < n)%nat -> rsum n (P x i) = 1.
Proof. intros Hi; unfold P, Rdiv; rewrite rsum_scal_r; apply Rinv_r, Rgt_not_eq, total_pos, Hi. Qed.

Lemma P_le1 x i j : (i < n)%nat -> (j < n)%nat -> P x i j <= 1.
Proof. intros Hi Hj; rewrite <- (P_sum x i Hi); apply (rsum_ge_term n (P x i)); auto using P_ge0. Qed.

Lemma P_le_vis x i j : (i < n)%nat -> (j < n)%nat -> P x i j <= vis see i j.
Proof.
  intros Hi Hj; destruct (vis_cases see i j) as [E|E]; rewrite E; [|apply P_le1; auto].
  unfold P, weight, Rdiv; rewrite E; lra.
Qed.

(** The derivative of the scores at x along v. *)
Variable dscore : tokens -> tokens -> nat -> nat -> R.
Hypothesis score_derivative : forall x v i j t,
  is_derive (fun u => score (line x v u) i j) t (dscore (line x v t) v i j).

(** J(x) v = P v + sum_j P_ij (x_j - m_i) dS_ij with m = P x. *)
Definition jvp (x v : tokens) : tokens := fun i a => rsum n (fun j => P x i j * v j a)
  + rsum n (fun j => P x i j * ((x j a - attention x i a) * dscore x v i j)).

(** <w, (J v)_i> = sum_j P_ij (<w, v_j> + <w, x_j - m_i> dS_ij). *)
Lemma vdot_jvp x v i w : vdot D w (jvp x v i) = rsum n (fun j => P x i j *
    (vdot D w (v j) + (vdot D w (x j) - vdot D w (attention x i)) * dscore x v i j)).
Proof. rewrite vdot_comm; unfold jvp; rewrite vdot_plus, !vdot_rsum; unfold vdot; sum_ring. Qed.

(** jvp is the derivative of attention along every line. *)
Theorem attention_derivative x v i a t : (i < n)%nat ->
  is_derive (fun u => attention (line x v u) i a) t (jvp (line x v t) v i a).
Proof.
  intros Hi; set (y := line x v t); assert (T := total_pos y i Hi); set (dS := dscore y v i).
  assert (DW : forall j, is_derive (fun u => weight (line x v u) i j) t (weight y i j * dS j)).
  { intros j; evar_last.
    - apply is_derive_scal, (is_derive_comp exp _ t); [apply is_derive_exp|apply score_derivative].
    - unfold weight, scal; simpl; unfold mult; simpl; fold y dS; ring. }
  assert (DT : is_derive (fun u => total (line x v u) i) t (rsum n (fun j => weight y i j * dS j)))
    by (apply is_derive_rsum; auto).
  assert (DP : forall j, is_derive (fun u => P (line x v u) i j) t
                           (P y i j * (dS j - rsum n (fun k => P y i k * dS k)))).
  { intros j; evar_last; [apply (is_derive_div _ _ _ _ _ (DW j) DT); fold y; lra|].
    replace (rsum n (fun k => P y i k * dS k)) with (rsum n (fun k => weight y i k * dS k) * / total y i)
      by (unfold P, Rdiv; sum_ring).
    unfold P; fold y; field; lra. }
  evar_last.
  - apply is_derive_rsum; intros j _; apply (is_derive_mult _ (fun u => line x v u j a) t _ (v j a) (DP j)).
    + unfold line; auto_derive; [trivial|ring].
    + intros; apply Rmult_comm.
  - unfold jvp, plus, mult; simpl; fold y dS.
    rewrite (rsum_ext n _ (fun j => P y i j * v j a + P y i j * (y j a * dS j)
      - P y i j * y j a * rsum n (fun k => P y i k * dS k))) by sum_ring.
    rewrite rsum_minus, rsum_scal_r; fold (attention y i a); sum_ring.
Qed.

(** <w, f(x) - f(y)> = <w, J(z) (x - y)> at a point z of the segment from y to x. *)
Theorem mean_value w x y : exists t, 0 <= t <= 1 /\ dot n D w (tsub (attention x) (attention y))
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
    unfold dot, vdot, tsub; sum_ring.
Qed.

(** The same for one token. *)
Lemma mean_value_row i w x y : (i < n)%nat -> exists t, 0 <= t <= 1 /\
  vdot D w (tsub (attention x) (attention y) i) = vdot D w (jvp (line y (tsub x y) t) (tsub x y) i).
Proof.
  intros Hi; destruct (mean_value (fun k b => delta i k * w b) x y) as [t [T Q]]; exists t; split; [auto|].
  assert (E : forall z, dot n D (fun k b => delta i k * w b) z = vdot D w (z i)).
  { intros z; rewrite <- (rsum_delta n i (fun k => vdot D w (z k)) Hi).
    apply rsum_ext; intros; apply vdot_scal. }
  rewrite !E in Q; exact Q.
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
  intros H x y Dx Dy; apply norm_inf_le; [pos|]; intros i a Hi Ha.
  destruct (mean_value_row i (delta a) x y Hi) as [t [T Q]].
  unfold vdot in Q; rewrite !rsum_delta in Q by auto; rewrite Q; auto.
Qed.

Lemma lipschitz_2 : (forall z v w, dom z -> dot n D w (jvp z v) <= K * norm_2 n D v * norm_2 n D w) ->
  lipschitz_on dom (norm_2 n D) (norm_2 n D) attention K.
Proof.
  intros H x y Dx Dy; apply norm_2_dual; [pos|]; intros w; destruct (mean_value w x y) as [t [T ->]]; auto.
Qed.

Lemma lipschitz_token_sum : (forall z v w, dom z -> (forall i, (i < n)%nat -> vnorm D (w i) <= 1) ->
    dot n D w (jvp z v) <= K * token_sum n D v) ->
  lipschitz_on dom (token_sum n D) (token_sum n D) attention K.
Proof.
  intros H x y Dx Dy; apply token_sum_dual; intros w Hw; destruct (mean_value w x y) as [t [T ->]]; auto.
Qed.

Lemma lipschitz_token_max :
  (forall z v i w, dom z -> (i < n)%nat -> vdot D w (jvp z v i) <= K * token_max n D v * vnorm D w) ->
  lipschitz_on dom (token_max n D) (token_max n D) attention K.
Proof.
  intros H x y Dx Dy; apply token_max_dual; [pos|]; intros i w Hi.
  destruct (mean_value_row i w x y Hi) as [t [T ->]]; auto.
Qed.
End Lipschitz.
End Attention.
#[global] Hint Resolve weight_ge0 P_ge0 : pos.

Lemma everywhere_convex x y t : everywhere x -> everywhere y -> 0 <= t <= 1 ->
  everywhere (line y (tsub x y) t).
Proof. intros; exact I. Qed.

(** ** How the tokens that one sees scatter about their mean *)

(** x_j - m_i for the mean m_i of what token i sees. *)
Definition dev n see score (x : tokens) i j a := x j a - attention n see score x i a.

Section Scatter.
Variables (n D : nat) (see : mask) (score : tokens -> nat -> nat -> R).
Hypothesis row : nonempty_rows n see.
Local Notation A := (P n see score).
Local Notation m := (attention n see score).
Local Notation dev := (dev n see score).

Lemma vdot_dev x i j w : vdot D w (dev x i j) = vdot D w (x j) - vdot D w (m x i).
Proof. rewrite !(vdot_comm D w); apply vdot_minus. Qed.

Lemma centred x i w : (i < n)%nat -> rsum n (fun j => A x i j * vdot D w (dev x i j)) = 0.
Proof.
  intros Hi; rewrite (rsum_ext n _ (fun j => A x i j * vdot D w (x j) - vdot D w (m x i) * A x i j))
    by (intros; rewrite vdot_dev; ring).
  rewrite rsum_minus, rsum_scal, <- vdot_mean, (P_sum n see score row x i Hi); unfold attention; ring.
Qed.

(** The mean square distance from y is the scatter plus the square of the mean's distance from y. *)
Lemma scatter x i y : (i < n)%nat ->
  rsum n (fun j => A x i j * (vnorm D (dev x i j))^2) + (vnorm D (fun a => y a - m x i a))^2
  = rsum n (fun j => A x i j * (vnorm D (fun a => x j a - y a))^2).
Proof.
  intros Hi; assert (E : forall q : nat -> R, rsum n (fun j => A x i j * (vnorm D (fun a => x j a - q a))^2)
    = rsum D (fun a => rsum n (fun j => A x i j * (x j a - q a)^2)))
    by (intros; rewrite rsum_swap; apply rsum_ext; intros; rewrite vnorm_sq, vdot_sq, rsum_scal; auto).
  unfold dev; rewrite !E, vnorm_sq, vdot_sq, <- rsum_plus; apply rsum_ext; intros a _.
  apply parallel_axis, (P_sum n see score row x i Hi).
Qed.

Lemma covariance_le x i w C : (i < n)%nat -> rsum n (fun j => A x i j * (vnorm D (dev x i j))^2) <= C ->
  rsum n (fun j => A x i j * (vdot D w (dev x i j))^2) <= C * (vnorm D w)^2.
Proof.
  intros Hi H; eapply Rle_trans; [|apply Rmult_le_compat_r; [apply pow2_ge_0|exact H]].
  rewrite <- rsum_scal_r; apply rsum_le; intros j Hj; rewrite Rmult_assoc, <- Rpow_mult_distr.
  apply Rmult_le_compat_l, pow_maj_Rabs; [apply P_ge0; auto|rewrite Rmult_comm; apply vdot_le].
Qed.
End Scatter.

(** ** The core map g(Z) = P Z, P_ij proportional to e^-|z_i - z_j|^2 *)

Definition sqdist d (z : tokens) i j := (vnorm d (fun a => z i a - z j a))^2.
Definition l2_score d (z : tokens) i j := - sqdist d z i j.
Definition l2_dscore d (z v : tokens) i j :=
  - (2 * vdot d (fun a => z i a - z j a) (fun a => v i a - v j a)).
Definition core n d see := attention n see (l2_score d).

Lemma sqdist_ge0 d z i j : 0 <= sqdist d z i j.
Proof. apply pow2_ge_0. Qed.
#[global] Hint Resolve sqdist_ge0 : pos.

Lemma sqdist_same d z i : sqdist d z i i = 0.
Proof. unfold sqdist; rewrite vnorm_sq, <- (rsum_0 d); unfold vdot; sum_ring. Qed.
Lemma sqdist_sym d z i j : sqdist d z i j = sqdist d z j i.
Proof. unfold sqdist; rewrite !vnorm_sq; unfold vdot; sum_ring. Qed.
Lemma sqdist_scale d k z i j : sqdist d (scale k z) i j = k^2 * sqdist d z i j.
Proof. unfold sqdist, scale; rewrite !vnorm_sq; unfold vdot; sum_ring. Qed.

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

Lemma self_row : nonempty_rows n see.
Proof. intros i Hi; exists i; auto. Qed.
Lemma vis_self i : (i < n)%nat -> vis see i i = 1.
Proof. intros Hi; unfold vis; rewrite self; auto. Qed.

(** A bound V on the mean of F under row i: what token i itself leaves pays for the others. *)
Lemma row_mean_le z i F V B : (i < n)%nat -> 0 <= B -> F i + k * B <= V ->
  (forall j, (j < n)%nat -> exp (l2_score d z i j) * (F j - V) <= B) ->
  rsum n (fun j => P n see (l2_score d) z i j * F j) <= V.
Proof.
  intros Hi B0 HV HB.
  set (S := rsum n (fun j => weight see (l2_score d) z i j * (F j - V))); assert (S0 : S <= 0).
  { apply Rle_trans with (rsum n (fun j => vis see i j * B + delta i j * (F i - V - B))).
    - apply rsum_le; intros j Hj; specialize (HB j Hj); unfold weight; rewrite Rmult_assoc.
      destruct (delta_cases i j) as [[<- ->]|[_ ->]].
      + rewrite vis_self by auto; unfold l2_score; rewrite sqdist_same, Ropp_0, exp_0; lra.
      + destruct (vis_cases see i j) as [-> | ->]; lra.
    - rewrite rsum_plus, rsum_scal_r, (rsum_delta n i (fun _ => F i - V - B)) by auto.
      generalize (others i Hi); nra. }
  replace (rsum n _) with (S * / total n see (l2_score d) z i + V * rsum n (P n see (l2_score d) z i))
    by (unfold S, P, Rdiv; sum_ring).
  assert (T := Rinv_0_lt_compat _ (total_pos n see (l2_score d) self_row z i Hi)).
  rewrite P_sum by auto using self_row; nra.
Qed.

(** sum_j P_ij |z_i - z_j|^2 <= W(k/e), k the number of other tokens seen. *)
Theorem row_moment_le z i :
  (i < n)%nat -> rsum n (fun j => P n see (l2_score d) z i j * sqdist d z i j) <= phi_inv k.
Proof.
  intros Hi; apply (row_mean_le z i _ _ (exp (- (phi_inv k + 1)))); auto with pos.
  - rewrite sqdist_same, phi_inv_root; lra.
  - intros j _; rewrite Rmult_comm; apply shifted_exp_max.
Qed.
End Core.

Lemma all_self n : sees_self n all_tokens.
Proof. intros i _; reflexivity. Qed.
Lemma all_others n : others_seen n all_tokens (INR (n - 1)).
Proof. intros i Hi; unfold vis, all_tokens; rewrite rsum_const, minus_INR by lia; simpl; lra. Qed.
