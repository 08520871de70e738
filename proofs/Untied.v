(** L2 attention has no Lipschitz constant when queries and keys have different weights; tying them,
    W_K = W_Q, makes (W_Q - W_K) W_K^T vanish and is excluded here. *)
From Lipsa Require Import Sums Tokens Core DotProduct.

(** - s |x_i W_Q + b_Q - x_j W_K - b_K|^2 *)
Definition untied_score D d s (W_Q W_K : tokens) (b_Q b_K : nat -> R) (x : tokens) i j :=
  - s * (vnorm d (fun c => vmul D (x i) W_Q c + b_Q c - (vmul D (x j) W_K c + b_K c)))^2.

(** L2 attention has no Lipschitz constant in any norms when (W_Q - W_K) W_K^T and the value map W are
    not 0, with any biases and any mask that shows some token itself and another one. *)
Theorem l2_untied_not_lipschitz n D D' d see s W_Q W_K b_Q b_K W N N' K :
  sees_two n see -> s <> 0 -> nonzero D D (rmul d (transpose W_K) (tsub W_Q W_K)) -> nonzero D D' W ->
  token_norm n D N -> token_norm n D' N' ->
  ~ lipschitz N N' (fun x => rmul D W (attention n see (untied_score D d s W_Q W_K b_Q b_K) x)) K.
Proof.
  intros [i [j [Hi [Hj [ne [Si Sj]]]]]] s0 HA HW HN HN'.
  destruct (directions D D' d _ W_K W HA HW) as [v [u [o [Ho [U1 U2]]]]].
  pose (b c := b_Q c - b_K c); set (k := vmul D u W_K) in *; set (g := vmul D v _) in U1.
  assert (G : forall c, vmul D v W_Q c = vmul D v W_K c + g c)
    by (intros; unfold g, vmul; rewrite <- rsum_plus; apply rsum_ext; intros; unfold tsub; ring).
  apply (indifferent_not_lipschitz n D D' see _ W N N' i j o v u
    (2 * s * vdot d g k) (2 * s * vdot d b k) (s * vdot d k k)
    (fun xi _ => - s * rsum d (fun c => (xi * g c + b c)^2))); auto.
  intros xi t l; unfold untied_score, rise, one_apart; rewrite vnorm_sq, vdot_sq; unfold vdot.
  rewrite (rsum_ext d _ (fun c => (xi * g c + b c)^2
    - delta j l * t * (2 * (xi * (g c * k c) + b c * k c) - t * (k c * k c)))).
  - rewrite rsum_minus, rsum_scal, rsum_minus, !rsum_scal, rsum_plus, rsum_scal; ring.
  - intros c _; rewrite !vmul_affine, G, (delta_diff j i) by auto; fold k; unfold b.
    destruct (delta_cases j l) as [[_ ->]|[_ ->]]; ring.
Qed.
