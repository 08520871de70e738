# Plants one fault a rule in a small theory under OUT: the audit must refuse each, and say why.
cmake_minimum_required(VERSION 3.25)

set(planted ${OUT}/selftest)
file(MAKE_DIRECTORY ${planted})

# expect(THEORY PAGE SAID): an audit of this theory and page must fail and say so; SAID empty: pass.
function(expect theory page expected)
  file(WRITE ${planted}/Planted.v "From Coq Require Import Raxioms.\nOpen Scope R_scope.\n${theory}")
  file(WRITE ${planted}/page.md "${page}")
  file(WRITE ${planted}/Statements.v "From Coq Require Import Raxioms.\nFrom Lipsa Require Import Planted.\nOpen Scope R_scope.
Check (Planted.plus : forall x y, x + y = y + x).\n")
  if(NOT expected MATCHES "^not in this theory")  # which is said of the text alone
    execute_process(COMMAND ${COQC} -q -R . Lipsa Planted.v WORKING_DIRECTORY ${planted}
      RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "the planted theory does not compile:\n${theory}\n${said}")
    endif()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -DCOQC=${COQC} -DCOQCHK=${COQCHK} -DOUT=${planted}
      -DTHEORY=Planted -DFOLDER=${planted} -DPAGE=${planted}/page.md -DRESTATED=${planted}/Statements.v
      -P ${CMAKE_CURRENT_LIST_DIR}/audit.cmake
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(expected STREQUAL "")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "refused without reason:\n${said}")
    endif()
  elseif(status EQUAL 0 OR NOT said MATCHES "${expected}")
    message(SEND_ERROR "not refused for '${expected}':\n${theory}\n${page}\n${said}")
  endif()
endfunction()

set(fine "Theorem plus : forall x y : R, x + y = y + x.\nProof. exact Rplus_comm. Qed.\n")
set(row "| claim | `Planted.plus` |\n")
expect("${fine}" "${row}" "")

# proofs that were not finished, used or not, and axioms
expect("${fine}Lemma bold : 0 = 1.\nProof. Admitted.\nTheorem built : 1 = 0.\nProof. symmetry. exact bold. Qed.\n"
  "${row}" "not proved: (Planted\\.)?bold")
expect("${fine}Definition unused : 0 = 1.\nProof. Admitted.\n" "${row}" "assumed, not proved:.*Lipsa\\.Planted\\.unused")
expect("${fine}Axiom handy : 0 = 1.\n" "${row}" "not in this theory: Axiom handy")
expect("${fine}Require Import ClassicalEpsilon.\nLemma pick : forall P : nat -> Prop, (exists n, P n) -> {n | P n}.
Proof. exact (constructive_indefinite_description (A:=nat)). Qed.\n"
  "${row}" "not proved: .*constructive_indefinite_description")

# statements that are not what they look like
expect("${fine}Notation \"x == y\" := (x <= x + y \\/ True) (at level 70).\n" "${row}" "not in this theory: Notation")
expect("#[bypass_check(guard)] Fixpoint loop (n : nat) : 0 = 1 := loop n.\n${fine}" "${row}" "not in this theory: #")
expect("${fine}Section Hidden.\n  Lemma bold : 0 = 0.\n  Proof. reflexivity. Qed.\nEnd Hidden.\n" "${row}"
  "not in this theory: Lemma bold")
expect("${fine}Local Open Scope nat_scope.\n" "${row}" "not in this theory: Open Scope nat_scope")
expect("Section Hidden.\nHypothesis mild : 0 = 1.\nTheorem plus : forall x y : R, x + y = y + x.
Proof. intros; generalize mild; intros _; apply Rplus_comm. Qed.\nEnd Hidden.\n" "${row}" "has type.*0 = 1")

# names of the page that say nothing
expect("${fine}" "| claim | `Planted.Gone_2` |\n" "no lemma or theorem: Planted\\.Gone_2")
expect("${fine}Definition bold : Prop := 0 = 1.\n" "| claim | `Planted.bold` |\n" "no lemma or theorem: Planted\\.bold")
expect("${fine}Lemma same : forall x y : R, x + y = y + x.\nProof. exact plus. Qed.\n" "| claim | `Planted.same` |\n"
  "not restated: Planted\\.same")
