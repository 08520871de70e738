(** Residual maps x + f(x): their constants, stacks of them, and their inverse when f is a contraction. *)
From Lipsa Require Import Sums Tokens Norms.

(** ** Sequences bounded by powers of L < 1 *)

Lemma geometric_lim C L : 0 <= L < 1 -> is_lim_seq (fun k => C * L ^ k) 0.
Proof.
  intros HL; rewrite <- (Rmult_0_r C); apply (is_lim_seq_scal_l _ C 0), is_lim_seq_geom.
  rewrite Rabs_pos_eq; lra.
Qed.

Lemma cauchy_geometric u C L : 0 <= L < 1 ->
  (forall p q, Rabs (u p - u q) <= C * L ^ p + C * L ^ q) ->
  forall p, Rabs (u p - Lim_seq u) <= C * L ^ p.
Proof.
  intros HL H p; assert (A := geometric_lim C L HL).
  assert (Q : is_lim_seq u (real (Lim_seq u))).
  { apply Lim_seq_correct', ex_lim_seq_cauchy_corr; intros eps.
    destruct (proj2 (is_lim_seq_spec _ _) A (pos_div_2 eps)) as [K HK]; simpl in HK.
    exists K; intros i j Hi Hj; eapply Rle_lt_trans; [apply H|].
    generalize (Rle_abs (C * L ^ i - 0)) (Rle_abs (C * L ^ j - 0)) (HK i Hi) (HK j Hj); lra. }
  refine (is_lim_seq_le _ _ (Rabs (u p - Lim_seq u)) (C * L ^ p) (H p) _ _).
  - apply (is_lim_seq_abs _ (u p - Lim_seq u)), is_lim_seq_minus'; [apply is_lim_seq_const|exact Q].
  - rewrite <- (Rplus_0_r (C * L ^ p)) at 1; apply is_lim_seq_plus'; [apply is_lim_seq_const|exact A].
Qed.

(** ** Residual maps *)

Definition residual (f : tokens -> tokens) (x : tokens) := tadd x (f x).

(** x and y are the same n tokens of D features. *)
Definition agree n D (x y : tokens) := forall i b, (i < n)%nat -> (b < D)%nat -> x i b = y i b.

Local Ltac entries := extensionality i; extensionality b; unfold residual, tsub, tadd, scale; ring.

Section Residual.
Variables (n D : nat) (N : tokens -> R).
Hypothesis norm : token_norm n D N.

Lemma norm_swap x y : N (tsub x y) = N (tsub y x).
Proof.
  replace (tsub x y) with (scale (-1) (tsub y x)) by entries.
  rewrite (norm_scale _ _ _ norm), Rabs_left by lra; ring.
Qed.

Lemma norm_tsub x y z : N (tsub x z) <= N (tsub x y) + N (tsub y z).
Proof. replace (tsub x z) with (tadd (tsub x y) (tsub y z)) by entries; apply norm. Qed.

Lemma agree_norm x y : agree n D x y -> N x <= N y.
Proof.
  intros H; destruct (norm_le_entry _ _ _ norm) as [a [a0 A]].
  assert (N (tsub x y) <= a * 0).
  { apply A; [lra|]; intros i b Hi Hb; unfold tsub; rewrite H, Rminus_eq_0, Rabs_R0 by auto; lra. }
  replace x with (tadd (tsub x y) y) by entries; generalize (norm_triangle _ _ _ norm (tsub x y) y); lra.
Qed.

Lemma norm_agree x y : N (tsub x y) <= 0 -> agree n D x y.
Proof.
  intros H i b Hi Hb; destruct (entry_le_norm _ _ _ norm) as [a [a0 A]]; specialize (A (tsub x y) i b Hi Hb).
  apply Rminus_diag_uniq, Rabs_eq_0, Rle_antisym; [|apply Rabs_pos]; eapply Rle_trans; [apply A|nra].
Qed.

(** If f is Lipschitz with constant L then x + f(x) is with 1 + L. *)
Theorem residual_lipschitz f L : lipschitz N N f L -> lipschitz N N (residual f) (1 + L).
Proof.
  intros F x y _ _; specialize (F x y I I).
  replace (tsub (residual f x) (residual f y)) with (tadd (tsub x y) (tsub (f x) (f y))) by entries.
  eapply Rle_trans; [apply norm|lra].
Qed.

(** *** The inverse *)

Section Inverse.
Variables (f : tokens -> tokens) (L : R).
Hypotheses (L1 : 0 <= L < 1) (F : lipschitz N N f L).

Lemma residual_expands x x' y y' : agree n D (residual f x) y -> agree n D (residual f x') y' ->
  (1 - L) * N (tsub x x') <= N (tsub y y').
Proof.
  intros H H'; apply Rle_trans with (N (tsub (residual f x) (residual f x'))).
  - generalize (norm_triangle _ _ _ norm (tsub (residual f x) (residual f x')) (tsub (f x') (f x))).
    replace (tadd _ _) with (tsub x x') by entries; generalize (F x' x I I); rewrite (norm_swap x'); lra.
  - apply agree_norm; intros i b Hi Hb; unfold tsub; rewrite H, H'; auto.
Qed.

Lemma le_over p q B : (1 - L) * p <= B * q -> p <= B / (1 - L) * q.
Proof. intros H; replace (_ * q) with (B * q / (1 - L)) by (field; lra); apply Rle_div_r; lra. Qed.

(** The inverse of x + f(x), f Lipschitz with L < 1, is Lipschitz with 1/(1 - L). *)
Theorem inverse_lipschitz x x' y y' :
  agree n D (residual f x) y -> agree n D (residual f x') y' ->
  N (tsub x x') <= 1 / (1 - L) * N (tsub y y').
Proof. intros; apply le_over; rewrite Rmult_1_l; apply residual_expands; auto. Qed.

(** A step towards the solution of x + f(x) = y.  Its length is the defect of x + f(x) = y at x. *)
Definition step (y x : tokens) := tsub y (f x).

Lemma defect_step y x : tsub (residual f x) y = tsub x (step y x).
Proof. unfold step; entries. Qed.

(** The defect shrinks by L in each step. *)
Lemma defect_le y x k :
  N (tsub (residual f (Nat.iter k (step y) x)) y) <= L ^ k * N (tsub (step y x) x).
Proof.
  induction k as [|k IH]; simpl; [rewrite defect_step, norm_swap; lra|].
  set (z := Nat.iter k (step y) x) in *.
  replace (tsub (residual f (step y z)) y) with (tsub (f (step y z)) (f z)) by (unfold step; entries).
  eapply Rle_trans; [apply (F _ _ I I)|]; rewrite norm_swap, <- defect_step, Rmult_assoc.
  apply Rmult_le_compat_l; [lra|exact IH].
Qed.

(** A priori: after k steps from x the error is at most L^k/(1 - L) times the length of the first. *)
Theorem inverse_error_after xs y x k : agree n D (residual f xs) y ->
  N (tsub (Nat.iter k (step y) x) xs) <= L ^ k / (1 - L) * N (tsub (step y x) x).
Proof.
  intros S; apply le_over; eapply Rle_trans; [apply residual_expands with (2 := S)|apply defect_le].
  intros i b _ _; reflexivity.
Qed.

(** A posteriori: the error of a step is at most L/(1 - L) times its length. *)
Theorem inverse_error xs y x (x' := step y x) : agree n D (residual f xs) y ->
  N (tsub x' xs) <= L / (1 - L) * N (tsub x' x).
Proof. rewrite <- (pow_1 L) at 1; apply (inverse_error_after xs y x 1). Qed.

(** If f is Lipschitz with L < 1 in a norm, x + f(x) = y has exactly one solution x for every y. *)
Theorem residual_bijective y : exists x, agree n D (residual f x) y /\
  forall x', agree n D (residual f x') y -> agree n D x' x.
Proof.
  pose (x_ := fun k => Nat.iter k (step y) y); set (d := N (tsub (step y y) y)).
  assert (d0 : 0 <= d) by apply (norm_ge0 n D), norm.
  assert (E : forall k, N (tsub (residual f (x_ k)) y) <= L ^ k * d) by (intros; apply defect_le).
  destruct (entry_le_norm _ _ _ norm) as [a [a0 A]], (norm_le_entry _ _ _ norm) as [a' [a'0 A']].
  pose (C := a * (d / (1 - L))); assert (0 <= C) by (apply Rmult_le_pos, Rdiv_le_0_compat; lra).
  pose (xs := fun i b => real (Lim_seq (fun k => x_ k i b))).
  assert (T : forall k, N (tsub (x_ k) xs) <= a' * (C * L ^ k)).
  { intros k; apply A'; [apply Rmult_le_pos, pow_le; lra|]; intros i b Hi Hb.
    apply (cauchy_geometric (fun k => x_ k i b)); [exact L1|]; intros p q.
    eapply Rle_trans; [apply (A (tsub (x_ p) (x_ q))); auto|].
    replace (C * L ^ p + C * L ^ q) with (a * (1 / (1 - L) * (L ^ p * d + L ^ q * d)))
      by (unfold C; field; lra); apply Rmult_le_compat_l, le_over; [auto|]; rewrite Rmult_1_l.
    eapply Rle_trans; [apply residual_expands; intros j c _ _; reflexivity|].
    eapply Rle_trans; [apply (norm_tsub _ y)|rewrite (norm_swap y); apply Rplus_le_compat; apply E]. }
  assert (S : agree n D (residual f xs) y).
  { apply norm_agree; refine (is_lim_seq_le _ _ _ 0 _ (is_lim_seq_const _)
      (geometric_lim ((1 + L) * a' * C + d) L L1)); intros k.
    eapply Rle_trans; [apply (norm_tsub _ (residual f (x_ k)))|].
    generalize (E k) (T k) (residual_lipschitz f L F xs (x_ k) I I); rewrite (norm_swap xs); nra. }
  exists xs; split; [exact S|]; intros x' S'; apply norm_agree.
  assert (X := residual_expands x' xs y y S' S); replace (tsub y y) with (scale 0 y) in X by entries.
  rewrite (norm_scale _ _ _ norm), Rabs_R0 in X; nra.
Qed.
End Inverse.

(** x + (a/B) f(x) is a bijection when f is Lipschitz with B and a < 1. *)
Theorem contractive_attention_bijective f a B y (g := residual (fun x => scale (a / B) (f x))) :
  0 <= a < 1 -> 0 < B -> lipschitz N N f B ->
  exists x, agree n D (g x) y /\ forall x', agree n D (g x') y -> agree n D x' x.
Proof.
  intros Ha B0 F; apply (residual_bijective _ a Ha); intros x x' _ _.
  replace (tsub _ _) with (scale (a / B) (tsub (f x) (f x'))) by entries.
  rewrite (norm_scale _ _ _ norm), Rabs_pos_eq by (apply Rdiv_le_0_compat; lra).
  replace a with (a / B * B) at 2 by (field; lra); rewrite Rmult_assoc.
  apply Rmult_le_compat_l; [apply Rdiv_le_0_compat; lra|apply F; exact I].
Qed.
End Residual.

(** ** Stacks of layers *)

(** f (m-1) o ... o f 0, and the product of K 0, ..., K (m-1). *)
Fixpoint stack (f : nat -> tokens -> tokens) m x :=
  match m with O => x | S l => f l (stack f l x) end.
Fixpoint rprod m (K : nat -> R) := match m with O => 1 | S l => K l * rprod l K end.

(** The constant of a stack of layers is the product of theirs; each layer has its own norms. *)
Theorem stack_lipschitz (N : nat -> tokens -> R) f K m :
  (forall l, (l < m)%nat -> 0 <= K l /\ lipschitz (N l) (N (S l)) (f l) (K l)) ->
  lipschitz (N O) (N m) (stack f m) (rprod m K).
Proof.
  induction m as [|m IH]; intros H; [intros x y _ _; simpl; lra|].
  destruct (H m) as [K0 F]; [auto|].
  apply (lipschitz_comp _ _ (N m) _ (stack f m) (f m)); [exact K0|apply IH; auto|exact F].
Qed.

(** The constant of a stack of residual layers is the product of 1 + L, L the constant of a layer. *)
Theorem residual_stack_lipschitz n D N f L m : token_norm n D N ->
  (forall l, (l < m)%nat -> 0 <= L l /\ lipschitz N N (f l) (L l)) ->
  lipschitz N N (stack (fun l => residual (f l)) m) (rprod m (fun l => 1 + L l)).
Proof.
  intros H F; apply (stack_lipschitz (fun _ => N)); intros l Hl; destruct (F l Hl) as [L0 G].
  split; [lra|apply (residual_lipschitz n D), G; exact H].
Qed.
