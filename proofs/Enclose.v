(** Decimal values of the constants.  This file alone needs coq-interval; the theory does not depend on it. *)
From Interval Require Import Tactic Float.Specific_ops Float.Specific_stdz.
From Lipsa Require Import Sums Phi Tokens Core Infinity Erratum.

(** Interval arithmetic on Coq's integers: slower than on machine numbers, but without axioms about them. *)
Module Floats := SpecificFloat StdZRadix2.
Module Intervals := IntervalTactic Floats.
Import Intervals.

Lemma phi_inv_between y a b : 0 <= a <= b -> phi a <= y <= phi b -> a <= phi_inv y <= b.
Proof. intros AB H; generalize (phi_ge_id a); split; [apply phi_inv_ge|apply phi_inv_le]; lra. Qed.

Lemma sharp_lip_between k d a b :
  1 <= a <= b -> phi ((a - 1) / kappa d) <= k * exp (- (2 / kappa d)) <= phi ((b - 1) / kappa d) ->
  a <= sharp_lip k d <= b.
Proof.
  intros AB H; generalize (kappa_ge2 d); intros KP; unfold sharp_lip.
  assert (S : (a - 1) / kappa d <= sharp_root k d <= (b - 1) / kappa d).
  { apply phi_inv_between; [|exact H]; split; [apply Rdiv_le_0_compat; lra|].
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat|]; lra. }
  destruct S as [S T]; apply Rle_div_l in S; [|lra]; apply Rle_div_r in T; lra.
Qed.

Local Ltac enclose :=
  (apply phi_inv_between || apply sharp_lip_between); unfold phi, kappa; simpl;
  split; interval with (i_prec 80).
Local Ltac enclose_all := repeat (split; [enclose|]); enclose.

(** W((n-1)/e) for n = 2, 3, 10, 100, 1000. *)
Theorem phi_inv_values :
  0.2784645427610737 <= phi_inv 1 <= 0.2784645427610738 /\
  0.4630555133655488 <= phi_inv 2 <= 0.4630555133655489 /\
  1.1010029972769726 <= phi_inv 9 <= 1.1010029972769727 /\
  2.6286495970202822 <= phi_inv 99 <= 2.6286495970202823 /\
  4.4205016039429274 <= phi_inv 999 <= 4.4205016039429275.
Proof. enclose_all. Qed.

(** The exact constant 1 + 4 W((n-1) e^(-3/2)) of n tokens in one dimension, n = 3, 5, 101, 1001. *)
Theorem sharp_values_1 :
  2.2922442926812866 <= sharp_lip 2 1 <= 2.2922442926812867 /\
  3.1077916799633419 <= sharp_lip 4 1 <= 3.1077916799633420 /\
  10.1227659986958667 <= sharp_lip 100 1 <= 10.1227659986958668 /\
  17.0687043547782661 <= sharp_lip 1000 1 <= 17.0687043547782662.
Proof. enclose_all. Qed.

(** The exact constant of 3 and of 5 tokens in two dimensions, and of 3 in four. *)
Theorem sharp_values_d :
  2.6635104408496979 <= sharp_lip 2 2 <= 2.6635104408496980 /\
  3.6899017575882073 <= sharp_lip 4 2 <= 3.6899017575882074 /\
  3.1942896540257462 <= sharp_lip 2 4 <= 3.1942896540257463.
Proof. enclose_all. Qed.

(** The core map of L2 attention of three tokens in one dimension has the Lipschitz constant
    2.2922442926812867 in the infinity norm, and none below 2.2922442926812866. *)
Theorem three_tokens (N := norm_inf 3 1) :
  lipschitz N N (core 3 1 all_tokens) 2.2922442926812867 /\
  forall K, lipschitz N N (core 3 1 all_tokens) K -> 2.2922442926812866 <= K.
Proof.
  destruct sharp_values_1 as [[A B] _].
  assert (E : forall K, lipschitz N N (core 3 1 all_tokens) K <-> sharp_lip 2 1 <= K)
    by (intros; apply (core_exact 1 1); auto).
  split; [apply E, B|intros K L; apply E in L; lra].
Qed.

(** The 2-norm formula as printed, of two tokens and W_Q = 5 (the truth is at least 25): 14.95 with W(1/e),
    20.17 with W(2/e). *)
Theorem printed_2_values (printed := fun c => printed_2 2 1 1 c (fun _ => 5) (fun _ => 1) 1) :
  14.94723447 <= printed (phi_inv 1) <= 14.94723448 /\ 20.16825555 <= printed (phi_inv 2) <= 20.16825556.
Proof.
  destruct phi_inv_values as [A [B _]]; unfold printed, printed_2; simpl.
  split; split; interval with (i_prec 80).
Qed.
