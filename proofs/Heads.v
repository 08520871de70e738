(** Several heads: how the Lipschitz constants of the heads, of any attention, give one of the layer. *)
From Lipsa Require Import Sums Tokens Norms.

Lemma vnorm_swap n H (p : nat -> nat -> R) :
  vnorm n (fun i => vnorm H (p i)) = vnorm H (fun h => vnorm n (fun i => p i h)).
Proof.
  assert (E : forall m k q,
    vnorm m (fun i => vnorm k (q i)) = sqrt (rsum m (fun i => rsum k (fun h => (q i h)^2)))).
  { intros; unfold vnorm at 1; rewrite vdot_sq; f_equal; apply rsum_ext; intros; rewrite vnorm_sq.
    apply vdot_sq. }
  rewrite E, (E H n (fun h i => p i h)), rsum_swap; reflexivity.
Qed.

Section Heads.
Variables (n d D' H : nat) (dom : tokens -> Prop) (N0 : tokens -> R).
Hypothesis N0_ge0 : forall x, 0 <= N0 x.
Variables (f : nat -> tokens -> tokens) (K : nat -> R).

(** The sum of all heads. *)
Definition heads_sum (x : tokens) : tokens := fun i o => rsum H (fun h => f h x i o).

(** [f^1(X) ... f^H(X)] W_O, with the d x D' matrix W_O^h for head h. *)
Variable W_O : nat -> tokens.
Definition heads_concat (x : tokens) : tokens := fun i o => rsum H (fun h => rmul d (W_O h) (f h x) i o).

Lemma heads_concat_tsub x y : tsub (heads_concat x) (heads_concat y)
  = fun i o => rsum H (fun h => rmul d (W_O h) (tsub (f h x) (f h y)) i o).
Proof. unfold heads_concat; token_ring. Qed.

(** Constants of the heads of a sum add up, in every norm. *)
Theorem lipschitz_heads_sum N : token_norm n D' N ->
  (forall h, (h < H)%nat -> lipschitz_on dom N0 N (f h) (K h)) -> lipschitz_on dom N0 N heads_sum (rsum H K).
Proof.
  intros HN HL x y Dx Dy; rewrite <- rsum_scal_r.
  apply Rle_trans with (rsum H (fun h => N (tsub (f h x) (f h y)))); [|apply rsum_le; intros; apply HL; auto].
  unfold heads_sum; clear HL; induction H as [|m IH]; simpl.
  - replace (tsub _ _) with (scale 0 x) by token_ring; rewrite (norm_scale _ _ _ HN), Rabs_R0; lra.
  - eapply Rle_trans; [|apply Rplus_le_compat_r, IH]; eapply Rle_trans; [|apply (norm_triangle _ _ _ HN)].
    apply Req_le; f_equal; token_ring.
Qed.

(** |W_O|_2 <= w for matrices below each other: y is one row a head. *)
Definition stacked_le (W : nat -> tokens) w := forall y : tokens,
  vnorm D' (fun o => rsum H (fun h => vmul d (y h) (W h) o)) <= w * norm_2 H d y.

(** An aggregate over the tokens that lets the heads inside: the 2-norm, the maximum. *)
Definition heads_inside F := forall p : nat -> nat -> R, (forall i h, 0 <= p i h) ->
  F (fun i => vnorm H (p i)) <= vnorm H (fun h => F (fun i => p i h)).

Lemma heads_inside_2 : heads_inside (vnorm n).
Proof. intros p _; apply Req_le, vnorm_swap. Qed.

Lemma heads_inside_max : heads_inside (rmax n).
Proof.
  intros p p0; apply rmax_le; [pos|]; intros i Hi.
  apply (agg_le H _ (aggregate_vnorm H)); intros h _; split; [auto|apply (rmax_ge n (fun i => p i h)), Hi].
Qed.

Lemma stacked_norm F W w (Y : nat -> tokens) : aggregate n F -> heads_inside F -> 0 <= w -> stacked_le W w ->
  F (fun i => vnorm D' (fun o => rsum H (fun h => rmul d (W h) (Y h) i o)))
  <= w * vnorm H (fun h => F (fun i => vnorm d (Y h i))).
Proof.
  intros HF HI w0 HW; apply Rle_trans with (F (fun i => w * vnorm H (fun h => vnorm d (Y h i)))).
  - apply (agg_le n F HF); intros i _; split; [pos|apply (HW (fun h => Y h i))].
  - rewrite (agg_scal n F HF) by auto; apply Rmult_le_compat_l; [auto|].
    apply (HI (fun i h => vnorm d (Y h i))); pos.
Qed.

Variable o : R.
Hypothesis o0 : 0 <= o.

Lemma lipschitz_heads_concat F (N := fun m (x : tokens) => F (fun i => vnorm m (x i))) :
  aggregate n F -> heads_inside F -> stacked_le W_O o ->
  (forall h, (h < H)%nat -> lipschitz_on dom N0 (N d) (f h) (K h)) ->
  lipschitz_on dom N0 (N D') heads_concat (o * vnorm H K).
Proof.
  intros HF HI HO HL x y Dx Dy; rewrite heads_concat_tsub.
  le_by (stacked_norm F W_O o _ HF HI o0 HO); rewrite Rmult_assoc; apply Rmult_le_compat_l; [auto|].
  rewrite Rmult_comm, <- (agg_scal H _ (aggregate_vnorm H)) by auto.
  apply (agg_le H _ (aggregate_vnorm H)); intros h Hh.
  split; [apply (agg_ge0 n F); pos|rewrite Rmult_comm; apply HL; auto].
Qed.

(** Constants K_h of heads side by side and |W_O|_2 <= o give o (sum_h K_h^2)^(1/2) in the 2-norm. *)
Theorem lipschitz_heads_concat_2 : stacked_le W_O o ->
  (forall h, (h < H)%nat -> lipschitz_on dom N0 (norm_2 n d) (f h) (K h)) ->
  lipschitz_on dom N0 (norm_2 n D') heads_concat (o * sqrt (rsum H (fun h => (K h)^2))).
Proof. rewrite <- vdot_sq; apply (lipschitz_heads_concat (vnorm n) (aggregate_vnorm n) heads_inside_2). Qed.

(** The same for the largest 2-norm of a token. *)
Theorem lipschitz_heads_concat_token_max : stacked_le W_O o ->
  (forall h, (h < H)%nat -> lipschitz_on dom N0 (token_max n d) (f h) (K h)) ->
  lipschitz_on dom N0 (token_max n D') heads_concat (o * sqrt (rsum H (fun h => (K h)^2))).
Proof. rewrite <- vdot_sq; apply (lipschitz_heads_concat (rmax n) (aggregate_rmax n) heads_inside_max). Qed.

(** One constant k of all heads and |W_O^T|_inf <= o give o k in the infinity norm. *)
Theorem lipschitz_heads_concat_inf k : 0 <= k ->
  (forall b, (b < D')%nat -> rsum H (fun h => rsum d (fun a => Rabs (W_O h a b))) <= o) ->
  (forall h, (h < H)%nat -> lipschitz_on dom N0 (norm_inf n d) (f h) k) ->
  lipschitz_on dom N0 (norm_inf n D') heads_concat (o * k).
Proof.
  intros k0 HO HL x y Dx Dy; rewrite heads_concat_tsub, Rmult_assoc.
  set (B := k * N0 (tsub x y)); assert (B0 : 0 <= B) by (unfold B; pos).
  apply norm_inf_le; [pos|]; intros i b Hi Hb; le_by rsum_abs.
  apply Rle_trans with (rsum H (fun h => rsum d (fun a => Rabs (W_O h a b)) * B)).
  - apply rsum_le; intros h Hh; apply vmul_le_inf; intros a Ha; le_by (entry_le_norm_inf n d); apply HL; auto.
  - rewrite rsum_scal_r; apply Rmult_le_compat_r; auto.
Qed.
End Heads.
