(** Corollaries for masks in which every token sees itself: causal, windows, and any other. *)
From Lipsa Require Import Sums Phi Tokens Core Infinity Kernel.

(** In the infinity norm no mask makes the core map worse than attention to all n tokens. *)
Theorem any_mask_inf n d see : sees_self n see -> inf_lipschitz n d see (sharp_lip (INR (n - 1)) d).
Proof. intros self; apply core_sharp_upper; auto using any_others, pos_INR. Qed.

(** With a causal mask the core map of n tokens has the constant of n tokens without one. *)
Theorem causal_inf n d : inf_lipschitz n d causal (sharp_lip (INR (n - 1)) d).
Proof. apply any_mask_inf, causal_self. Qed.

(** A token sees itself and the w tokens before it. *)
Definition window w : mask := fun i j => (Nat.leb j i && Nat.leb i (j + w))%bool.

Lemma window_others n w : others_seen n (window w) (INR w).
Proof.
  intros i _; apply Rle_trans with (INR (Nat.min n (S i) - (i - w))).
  - induction n as [|m IH]; [apply pos_INR|].
    change (rsum (S m) (vis (window w) i)) with (rsum m (vis (window w) i) + vis (window w) i m).
    eapply Rle_trans; [apply Rplus_le_compat_r, IH|]; unfold vis, window.
    destruct (Nat.leb_spec m i); [destruct (Nat.leb_spec i (m + w))|]; cbv [andb];
      rewrite <- ?S_INR, ?Rplus_0_r; apply le_INR; lia.
  - rewrite Rplus_comm, <- S_INR; apply le_INR; lia.
Qed.

(** With a window of w tokens before each the constant is that of w + 1 tokens, however many there are. *)
Theorem window_inf n d w : inf_lipschitz n d (window w) (sharp_lip (INR w) d).
Proof.
  apply core_sharp_upper; [|apply pos_INR|apply window_others].
  intros i _; unfold window; rewrite Nat.leb_refl; simpl; apply Nat.leb_le; lia.
Qed.
