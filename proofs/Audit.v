(** Every theorem that the map of trust names, restated: no hypothesis hides in a section, no name in a notation.
    The test proofs.audit lets Coq compare each with the theorem. *)
From Lipsa Require Import Sums Phi KeyLemma Tokens Norms Core Infinity Kernel Frobenius Star Heads
  MultiHead DotProduct Untied Ball Erratum Invert Masks.
Open Scope R_scope.

(** ** Phi.v *)

Check (Phi.phi_inv_monotone :
  forall y z : R, 0 <= y <= z -> phi_inv y <= phi_inv z).

(** ** Infinity.v *)

Check (Infinity.core_sharp_upper :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see -> 0 <= k -> others_seen n see k -> inf_lipschitz n d see (sharp_lip k d)).

Check (Infinity.clusters_lower :
  forall (mu mv d : nat) (Q K : R),
  let n := S (mu + mv) in
  let mass := INR (mu + mv) * exp (- Q) in
  (0 < d)%nat ->
  0 <= Q ->
  inf_lipschitz n d all_tokens K ->
  (2 + kappa d * Q * mass) / (1 + mass) - 1 -
  kappa d * Q * ((INR mu - INR mv) * exp (- Q) / (1 + mass)) ^ 2 <= K).

Check (Infinity.core_exact :
  forall (m d : nat) (K : R),
  let n := S (m + m) in
  (0 < d)%nat -> inf_lipschitz n d all_tokens K <-> sharp_lip (INR (n - 1)) d <= K).

Check (Infinity.core_even_gap :
  forall (m d : nat) (K : R),
  let n := S (S (m + m)) in
  let k := INR (n - 1) in
  let r := sharp_root k d in
  let Q := r + 2 / kappa d + 1 in
  (0 < d)%nat ->
  inf_lipschitz n d all_tokens K ->
  sharp_lip k d - kappa d * Q / k ^ 2 <= sharp_lip k d - kappa d * Q * (r / (k * (1 + r))) ^ 2 <=
  K).

Check (Infinity.sharp_le_published :
  forall (k : R) (d : nat),
  (1 <= d)%nat ->
  0 <= k -> sharp_lip k d <= 1 + kappa d * phi_inv k <= 1 + 4 * sqrt (INR d) * phi_inv k).

(** ** Kernel.v *)

Check (Kernel.col_sums_covers :
  forall (n d : nat) (see : mask),
  sees_self n see -> forall rho : R, covers n see rho -> col_sum_le n d see (sqrt (rho * INR n))).

Check (Kernel.col_sums_seen_by :
  forall (n d : nat) (see : mask),
  sees_self n see -> forall k : R, seen_by n see k -> col_sum_le n d see (1 + k)).

Check (Kernel.col_moments_1 :
  forall (n d : nat) (see : mask),
  sees_self n see ->
  forall k sigma : R,
  let t := phi_inv k in
  0 <= k -> seen_by n see k -> col_sum_le n d see sigma -> col_moment_le n d see (t * (sigma + 1))).

Check (Kernel.col_moments_2 :
  forall (n d : nat) (see : mask),
  sees_self n see -> forall k : R, seen_by n see k -> col_moment_le n d see (k * phi_inv 1)).

Check (Kernel.col_moments_3 :
  forall (n d : nat) (see : mask),
  sees_self n see ->
  forall rho eps : R,
  covers n see rho ->
  0 < eps < 1 -> col_moment_le n d see (sqrt rho * Rpower (INR n) ((1 + eps) / 2) / (exp 1 * eps))).

(** ** Frobenius.v *)

Check (Frobenius.core_lipschitz_2 :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see ->
  0 <= k ->
  others_seen n see k ->
  forall sigma M : R,
  col_sum_le n d see sigma ->
  col_moment_le n d see M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see)
    (2 * phi_inv k + sqrt sigma + 2 * sqrt (phi_inv k * M))).

Check (Frobenius.core_lipschitz_token_sum :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see ->
  0 <= k ->
  others_seen n see k ->
  forall sigma M : R,
  col_sum_le n d see sigma ->
  col_moment_le n d see M ->
  lipschitz (token_sum n d) (token_sum n d) (core n d see)
    (2 * phi_inv k + sigma + 2 * M + 2 * sqrt (phi_inv k * M * sigma))).

Check (Frobenius.core_lipschitz_token_max :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see ->
  0 <= k ->
  others_seen n see k ->
  lipschitz (token_max n d) (token_max n d) (core n d see) (1 + 4 * phi_inv k)).

Check (Frobenius.core_lipschitz_2_schur :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see ->
  0 <= k ->
  others_seen n see k ->
  forall sigma M : R,
  col_sum_le n d see sigma ->
  col_moment_le n d see M ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see)
    (sqrt
       ((1 + 4 * phi_inv k) * (2 * phi_inv k + sigma + 2 * M + 2 * sqrt (phi_inv k * M * sigma))))).

Check (Frobenius.core_lipschitz_2_any_mask :
  forall (n d : nat) (see : mask) (k : R),
  sees_self n see ->
  0 <= k ->
  others_seen n see k ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) (sqrt (INR n) * (1 + 4 * phi_inv k))).

Check (Frobenius.core_lipschitz_K2 :
  forall n d : nat, lipschitz (norm_2 n d) (norm_2 n d) (core n d all_tokens) (K2 n)).

Check (Frobenius.K2_le_published :
  forall n : nat, (1 <= n)%nat -> K2 n <= sqrt (INR n) * (4 * phi_inv (INR (n - 1)) + 1)).

(** ** Star.v *)

Check (Star.star_lower_order :
  forall M : nat,
  (0 < M)%nat ->
  forall K : R,
  lipschitz (norm_2 (M + M * M) (S (M * M))) (norm_2 (M + M * M) (S (M * M)))
    (core (M + M * M) (S (M * M)) all_tokens) K -> sqrt (sqrt (INR (M + M * M))) / 4 <= K).

(** ** Heads.v *)

Check (Heads.lipschitz_heads_sum :
  forall (n D' H : nat) (dom : tokens -> Prop) (N0 : tokens -> R) (f : nat -> tokens -> tokens)
    (K : nat -> R) (N : tokens -> R),
  token_norm n D' N ->
  (forall h : nat, (h < H)%nat -> lipschitz_on dom N0 N (f h) (K h)) ->
  lipschitz_on dom N0 N (heads_sum H f) (rsum H K)).

Check (Heads.lipschitz_heads_concat_2 :
  forall (n d D' H : nat) (dom : tokens -> Prop) (N0 : tokens -> R),
  (forall x : tokens, 0 <= N0 x) ->
  forall (f : nat -> tokens -> tokens) (K : nat -> R) (W_O : nat -> tokens) (o : R),
  0 <= o ->
  stacked_le d D' H W_O o ->
  (forall h : nat, (h < H)%nat -> lipschitz_on dom N0 (norm_2 n d) (f h) (K h)) ->
  lipschitz_on dom N0 (norm_2 n D') (heads_concat d H f W_O)
    (o * sqrt (rsum H (fun h : nat => K h ^ 2)))).

Check (Heads.lipschitz_heads_concat_token_max :
  forall (n d D' H : nat) (dom : tokens -> Prop) (N0 : tokens -> R),
  (forall x : tokens, 0 <= N0 x) ->
  forall (f : nat -> tokens -> tokens) (K : nat -> R) (W_O : nat -> tokens) (o : R),
  0 <= o ->
  stacked_le d D' H W_O o ->
  (forall h : nat, (h < H)%nat -> lipschitz_on dom N0 (token_max n d) (f h) (K h)) ->
  lipschitz_on dom N0 (token_max n D') (heads_concat d H f W_O)
    (o * sqrt (rsum H (fun h : nat => K h ^ 2)))).

(** ** MultiHead.v *)

Check (MultiHead.multihead_sum :
  forall (n D d dv D' H : nat) (see : mask) (s : R) (W_Q W_V W_O : nat -> tokens),
  0 <= s ->
  forall L : R,
  0 <= L ->
  forall (Nin N Nout : tokens -> R) (q m : nat -> R),
  token_norm n d N ->
  token_norm n D' Nout ->
  lipschitz N N (core n d see) L ->
  (forall h : nat, (h < H)%nat -> lipschitz Nin N (rmul D (W_Q h)) (q h)) ->
  (forall h : nat,
   (h < H)%nat -> 0 <= m h /\ lipschitz N Nout (rmul d (QVO D dv W_Q W_V W_O h)) (m h)) ->
  lipschitz Nin Nout (l2_multihead n D d dv H see s W_Q W_V W_O)
    (s * L * rsum H (fun h : nat => q h * m h))).

Check (MultiHead.multihead_concat_2 :
  forall (n D d dv D' H : nat) (see : mask) (s : R) (W_Q W_V W_O : nat -> tokens),
  0 <= s ->
  forall L : R,
  0 <= L ->
  forall (q r : nat -> R) (o : R),
  0 <= o ->
  stacked_le dv D' H W_O o ->
  (forall h : nat, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h)) ->
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) L ->
  (forall h : nat, (h < H)%nat -> 0 <= r h /\ opnorm_le d dv (QV D W_Q W_V h) (r h)) ->
  lipschitz (norm_2 n D) (norm_2 n D') (l2_multihead n D d dv H see s W_Q W_V W_O)
    (o * sqrt (rsum H (fun h : nat => (s * L * (q h * r h)) ^ 2)))).

Check (MultiHead.multihead_concat_token_max :
  forall (n D d dv D' H : nat) (see : mask) (s : R) (W_Q W_V W_O : nat -> tokens),
  0 <= s ->
  forall L : R,
  0 <= L ->
  forall (q r : nat -> R) (o : R),
  0 <= o ->
  stacked_le dv D' H W_O o ->
  (forall h : nat, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h)) ->
  lipschitz (token_max n d) (token_max n d) (core n d see) L ->
  (forall h : nat, (h < H)%nat -> 0 <= r h /\ opnorm_le d dv (QV D W_Q W_V h) (r h)) ->
  lipschitz (token_max n D) (token_max n D') (l2_multihead n D d dv H see s W_Q W_V W_O)
    (o * sqrt (rsum H (fun h : nat => (s * L * (q h * r h)) ^ 2)))).

Check (MultiHead.multihead_fused :
  forall (n D d dv D' H : nat) (see : mask) (s : R) (W_Q W_V W_O : nat -> tokens),
  0 <= s ->
  forall L : R,
  0 <= L ->
  forall b m : R,
  lipschitz (norm_2 n d) (norm_2 n d) (core n d see) L ->
  0 <= b ->
  0 <= m ->
  (forall p : nat -> R, norm_2 H d (fun h : nat => vmul D p (W_Q h)) <= b * vnorm D p) ->
  stacked_le d D' H (QVO D dv W_Q W_V W_O) m ->
  lipschitz (norm_2 n D) (norm_2 n D') (l2_multihead n D d dv H see s W_Q W_V W_O) (s * L * m * b)).

Check (MultiHead.QV_le :
  forall (D d dv H : nat) (W_Q W_V : nat -> tokens) (q : nat -> R),
  (forall h : nat, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h)) ->
  forall (h : nat) (v : R),
  (h < H)%nat -> 0 <= v -> opnorm_le D dv (W_V h) v -> opnorm_le d dv (QV D W_Q W_V h) (q h * v)).

Check (MultiHead.multihead_inf :
  forall (n D d dv D' H : nat) (W_Q W_V W_O : nat -> tokens) (q1 q2 : nat -> R) (q v o : R),
  0 <= q ->
  0 <= v ->
  0 <= o ->
  (forall h : nat,
   (h < H)%nat ->
   0 <= q1 h /\
   0 <= q2 h /\
   q1 h * q2 h <= q /\ colsum_le d D (transpose (W_Q h)) (q1 h) /\ colsum_le D d (W_Q h) (q2 h)) ->
  (forall h : nat, (h < H)%nat -> colsum_le D dv (W_V h) v) ->
  (forall b : nat,
   (b < D')%nat -> rsum H (fun h : nat => rsum dv (fun a : nat => Rabs (W_O h a b))) <= o) ->
  forall (see : mask) (s L : R),
  0 <= s ->
  0 <= L ->
  inf_lipschitz n d see L ->
  lipschitz (norm_inf n D) (norm_inf n D') (l2_multihead n D d dv H see s W_Q W_V W_O)
    (o * (s * L * (q * v)))).

Check (MultiHead.theorem_3_2_inf :
  forall (n D d dv D' H : nat) (W_Q W_V W_O : nat -> tokens),
  (1 <= d)%nat ->
  forall (q1 q2 : nat -> R) (q v o : R),
  0 <= q ->
  0 <= v ->
  0 <= o ->
  (forall h : nat,
   (h < H)%nat ->
   0 <= q1 h /\
   0 <= q2 h /\
   q1 h * q2 h <= q /\ colsum_le d D (transpose (W_Q h)) (q1 h) /\ colsum_le D d (W_Q h) (q2 h)) ->
  (forall h : nat, (h < H)%nat -> colsum_le D dv (W_V h) v) ->
  (forall b : nat,
   (b < D')%nat -> rsum H (fun h : nat => rsum dv (fun a : nat => Rabs (W_O h a b))) <= o) ->
  lipschitz (norm_inf n D) (norm_inf n D')
    (l2_multihead n D d dv H all_tokens (/ sqrt (INR d)) W_Q W_V W_O)
    ((4 * phi_inv (INR (n - 1)) + / sqrt (INR d)) * o * q * v)).

Check (MultiHead.theorem_3_2_two :
  forall (n D d dv D' H : nat) (W_Q W_V W_O : nat -> tokens),
  (1 <= d)%nat ->
  forall (q v : nat -> R) (o : R),
  0 <= o ->
  stacked_le dv D' H W_O o ->
  (forall h : nat, (h < H)%nat -> 0 <= q h /\ opnorm_le D d (W_Q h) (q h)) ->
  (forall h : nat, (h < H)%nat -> 0 <= v h /\ opnorm_le D dv (W_V h) (v h)) ->
  lipschitz (norm_2 n D) (norm_2 n D')
    (l2_multihead n D d dv H all_tokens (/ sqrt (INR d)) W_Q W_V W_O)
    (sqrt (INR n) / sqrt (INR d) * (4 * phi_inv (INR (n - 1)) + 1) *
     sqrt (rsum H (fun h : nat => q h ^ 4 * v h ^ 2)) * o)).

(** ** DotProduct.v *)

Check (DotProduct.theorem_3_1_dot_product_not_lipschitz :
  forall (n D D' d : nat) (see : mask) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R)
    (W : tokens) (N N' : tokens -> R) (K : R),
  sees_two n see ->
  s <> 0 ->
  nonzero D D (rmul d (transpose W_K) W_Q) ->
  nonzero D D' W ->
  token_norm n D N ->
  token_norm n D' N' ->
  ~
  lipschitz N N'
    (fun x : tokens => rmul D W (attention n see (dot_score D d s W_Q W_K b_Q b_K) x)) K).

Check (DotProduct.theorem_3_1_multihead :
  forall (n D D' d dv H : nat) (see : mask) (s : R) (W_Q W_K W_V : nat -> tokens)
    (W_O : nat -> nat -> nat -> R) (b_Q b_K : nat -> nat -> R) (R0 : tokens) 
    (h : nat) (N N' : tokens -> R) (K : R),
  sees_two n see ->
  s <> 0 ->
  (h < H)%nat ->
  nonzero D D (rmul d (transpose (W_K h)) (W_Q h)) ->
  nonzero D dv (W_V h) ->
  (forall g a b : nat,
   (g < H)%nat -> (a < dv)%nat -> (b < dv)%nat -> vmul D' (W_O g a) R0 b = delta h g * delta a b) ->
  token_norm n D N ->
  token_norm n D' N' ->
  ~
  lipschitz N N'
    (heads_concat dv H
       (fun (g : nat) (x : tokens) =>
        rmul D (W_V g) (attention n see (dot_score D d s (W_Q g) (W_K g) (b_Q g) (b_K g)) x)) W_O)
    K).

(** ** Untied.v *)

Check (Untied.l2_untied_not_lipschitz :
  forall (n D D' d : nat) (see : mask) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R)
    (W : tokens) (N N' : tokens -> R) (K : R),
  sees_two n see ->
  s <> 0 ->
  nonzero D D (rmul d (transpose W_K) (tsub W_Q W_K)) ->
  nonzero D D' W ->
  token_norm n D N ->
  token_norm n D' N' ->
  ~
  lipschitz N N'
    (fun x : tokens => rmul D W (attention n see (untied_score D d s W_Q W_K b_Q b_K) x)) K).

(** ** Ball.v *)

Check (Ball.columns_le_n :
  forall (n D : nat) (r : R) (see : mask) (score : tokens -> nat -> nat -> R),
  nonempty_rows n see -> columns_le n D r see score (INR n)).

Check (Ball.columns_le_seeing :
  forall (n D : nat) (r : R) (see : mask) (score : tokens -> nat -> nat -> R) (c : R),
  nonempty_rows n see ->
  (forall j : nat, (j < n)%nat -> rsum n (fun i : nat => vis see i j) <= c) ->
  columns_le n D r see score c).

Check (Ball.dot_ball_2 :
  forall (n D : nat) (see : mask) (A : tokens) (beta : nat -> R) (r a b : R),
  nonempty_rows n see ->
  0 <= a ->
  opnorm_le D D A a ->
  vnorm D beta <= b ->
  forall sigma : R,
  columns_le n D r see (bilinear_score D A beta) sigma ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D) (attention n see (bilinear_score D A beta))
    (sqrt (sigma * (1 + r ^ 2 * (a * r + b) ^ 2)) + a * r ^ 2)).

Check (Ball.dot_ball_token_max :
  forall (n D : nat) (see : mask) (A : tokens) (beta : nat -> R) (r a b : R),
  nonempty_rows n see ->
  0 <= a ->
  opnorm_le D D A a ->
  vnorm D beta <= b ->
  lipschitz_on (ball n D r) (token_max n D) (token_max n D)
    (attention n see (bilinear_score D A beta)) (sqrt (1 + r ^ 2 * (a * r + b) ^ 2) + a * r ^ 2)).

Check (Ball.columns_le_exp :
  forall (n D : nat) (see : mask) (A : tokens) (beta : nat -> R) (r a b : R),
  nonempty_rows n see ->
  0 <= a ->
  opnorm_le D D A a ->
  vnorm D beta <= b ->
  forall S : R,
  (forall j : nat, (j < n)%nat -> rsum n (fun i : nat => vis see i j / rsum n (vis see i)) <= S) ->
  columns_le n D r see (bilinear_score D A beta) (exp (2 * r * (a * r + b)) * S)).

Check (Ball.dot_ball_head_token_max :
  forall (n D D' d : nat) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R) 
    (W : tokens) (r a b v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  vnorm D (fun c : nat => s * vmul d b_Q (transpose W_K) c) <= b ->
  opnorm_le D D' W v ->
  forall see : mask,
  nonempty_rows n see ->
  lipschitz_on (ball n D r) (token_max n D) (token_max n D')
    (fun x : tokens => rmul D W (attention n see (dot_score D d s W_Q W_K b_Q b_K) x))
    (v * (sqrt (1 + r ^ 2 * (a * r + b) ^ 2) + a * r ^ 2))).

Check (Ball.dot_ball_seeing :
  forall (n D D' d : nat) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R) 
    (W : tokens) (r a b v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  vnorm D (fun c : nat => s * vmul d b_Q (transpose W_K) c) <= b ->
  opnorm_le D D' W v ->
  forall (see : mask) (c : R),
  nonempty_rows n see ->
  (forall j : nat, (j < n)%nat -> rsum n (fun i : nat => vis see i j) <= c) ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D')
    (fun x : tokens => rmul D W (attention n see (dot_score D d s W_Q W_K b_Q b_K) x))
    (v * (sqrt (c * (1 + r ^ 2 * (a * r + b) ^ 2)) + a * r ^ 2))).

Check (Ball.dot_ball_unmasked :
  forall (n D D' d : nat) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R) 
    (W : tokens) (r a b v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  vnorm D (fun c : nat => s * vmul d b_Q (transpose W_K) c) <= b ->
  opnorm_le D D' W v ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D')
    (fun x : tokens => rmul D W (attention n all_tokens (dot_score D d s W_Q W_K b_Q b_K) x))
    (v *
     (sqrt (Rmin (INR n) (exp (2 * r * (a * r + b))) * (1 + r ^ 2 * (a * r + b) ^ 2)) + a * r ^ 2))).

Check (Ball.dot_ball_causal :
  forall (n D D' d : nat) (s : R) (W_Q W_K : tokens) (b_Q b_K : nat -> R) 
    (W : tokens) (r a b v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  vnorm D (fun c : nat => s * vmul d b_Q (transpose W_K) c) <= b ->
  opnorm_le D D' W v ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D')
    (fun x : tokens => rmul D W (attention n causal (dot_score D d s W_Q W_K b_Q b_K) x))
    (v *
     (sqrt (Rmin (INR n) (exp (2 * r * (a * r + b)) * harmonic n) * (1 + r ^ 2 * (a * r + b) ^ 2)) +
      a * r ^ 2))).

Check (Ball.castin_ball :
  forall (n D D' d : nat) (s : R) (W_Q W_K W : tokens) (r a v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D' W v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  forall see : mask,
  nonempty_rows n see ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D')
    (fun x : tokens =>
     rmul D W
       (attention n see
          (fun (x0 : tokens) (i j : nat) => s * vdot d (vmul D (x0 i) W_Q) (vmul D (x0 j) W_K)) x))
    (v * (sqrt 3 * sqrt (a ^ 2 * r ^ 4 * (4 * INR n + 1) + INR n)))).

Check (Ball.castin_mean_field :
  forall (n D D' d : nat) (s : R) (W_Q W_K W : tokens) (r a v : R),
  0 <= a ->
  0 <= v ->
  opnorm_le D D' W v ->
  opnorm_le D D (scale s (rmul d (transpose W_K) W_Q)) a ->
  lipschitz_on (ball n D r) (norm_2 n D) (norm_2 n D')
    (fun x : tokens =>
     rmul D W
       (attention n all_tokens
          (fun (x0 : tokens) (i j : nat) => s * vdot d (vmul D (x0 i) W_Q) (vmul D (x0 j) W_K)) x))
    (v * ((1 + 3 * (a * r ^ 2)) * exp (2 * (a * r ^ 2))))).

(** ** Erratum.v *)

Check (Erratum.printed_2_counterexample :
  (forall K : R, lipschitz (norm_2 2 1) (norm_2 2 1) (one_feature 2 5) K -> 25 <= K) /\
  printed_2 2 1 1 (phi_inv 1) (fun _ : nat => 5) (fun _ : nat => 1) 1 < 21.3 /\
  printed_2 2 1 1 (phi_inv 2) (fun _ : nat => 5) (fun _ : nat => 1) 1 < 21.3).

(** ** Invert.v *)

Check (Invert.residual_lipschitz :
  forall (n D : nat) (N : tokens -> R),
  token_norm n D N ->
  forall (f : tokens -> tokens) (L : R), lipschitz N N f L -> lipschitz N N (residual f) (1 + L)).

Check (Invert.inverse_lipschitz :
  forall (n D : nat) (N : tokens -> R),
  token_norm n D N ->
  forall (f : tokens -> tokens) (L : R),
  0 <= L < 1 ->
  lipschitz N N f L ->
  forall x x' y y' : tokens,
  agree n D (residual f x) y ->
  agree n D (residual f x') y' -> N (tsub x x') <= 1 / (1 - L) * N (tsub y y')).

Check (Invert.inverse_error :
  forall (n D : nat) (N : tokens -> R),
  token_norm n D N ->
  forall (f : tokens -> tokens) (L : R),
  0 <= L < 1 ->
  lipschitz N N f L ->
  forall xs y x : tokens,
  let x' := step f y x in
  agree n D (residual f xs) y -> N (tsub x' xs) <= L / (1 - L) * N (tsub x' x)).

Check (Invert.residual_bijective :
  forall (n D : nat) (N : tokens -> R),
  token_norm n D N ->
  forall (f : tokens -> tokens) (L : R),
  0 <= L < 1 ->
  lipschitz N N f L ->
  forall y : tokens,
  exists x : tokens,
    agree n D (residual f x) y /\
    (forall x' : tokens, agree n D (residual f x') y -> agree n D x' x)).

Check (Invert.contractive_attention_bijective :
  forall (n D : nat) (N : tokens -> R),
  token_norm n D N ->
  forall (f : tokens -> tokens) (a B : R) (y : tokens),
  let g := residual (fun x : tokens => scale (a / B) (f x)) in
  0 <= a < 1 ->
  0 < B ->
  lipschitz N N f B ->
  exists x : tokens,
    agree n D (g x) y /\ (forall x' : tokens, agree n D (g x') y -> agree n D x' x)).

Check (Invert.stack_lipschitz :
  forall (N : nat -> tokens -> R) (f : nat -> tokens -> tokens) (K : nat -> R) (m : nat),
  (forall l : nat, (l < m)%nat -> 0 <= K l /\ lipschitz (N l) (N (S l)) (f l) (K l)) ->
  lipschitz (N 0%nat) (N m) (stack f m) (rprod m K)).

(** ** Masks.v *)

Check (Masks.any_mask_inf :
  forall (n d : nat) (see : mask),
  sees_self n see -> inf_lipschitz n d see (sharp_lip (INR (n - 1)) d)).
