# Plants one fault a rule in a small theory under OUT: the audit must refuse each, and say why.
cmake_minimum_required(VERSION 3.25)

set(planted ${OUT}/selftest)
file(MAKE_DIRECTORY ${planted})

# expect(THEORY PAGE SAID): an audit of this theory and page must fail and say so; SAID empty: pass.
function(expect theory page expected)
  file(WRITE ${planted}/Planted.v "From Coq Require Import Raxioms.\nOpen Scope R_scope.\n${theory}")
  file(WRITE ${planted}/page.md "${page}")
  execute_process(COMMAND ${COQC} -q -R . Lipsa Planted.v WORKING_DIRECTORY ${planted}
    RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the planted theory does not compile:\n${said}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -DCOQC=${COQC} -DCOQCHK=${COQCHK} -DOUT=${planted}
      -DTHEORY=Planted -DFOLDER=${planted} -DPAGE=${planted}/page.md -P ${CMAKE_CURRENT_LIST_DIR}/audit.cmake
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
expect("${fine}Theorem bold : 0 = 1.\nProof. Admitted.\n" "${row}" "not proved: (Planted\\.)?bold")
expect("${fine}Lemma bold : 0 = 1.\nProof. Admitted.\nTheorem built : 1 = 0.\nProof. symmetry; exact bold. Qed.\n"
  "${row}" "not proved: (Planted\\.)?bold")
expect("${fine}Lemma unused : 0 = 1.\nProof. Admitted.\n" "${row}" "assumed, not proved:.*Lipsa\\.Planted\\.unused")
expect("${fine}Axiom handy : 0 = 1.\nTheorem built : 1 = 0.\nProof. symmetry; exact handy. Qed.\n" "${row}"
  "not proved: (Planted\\.)?handy")
expect("${fine}" "| claim | `Planted.gone` |\n" "Planted\\.gone")
expect("Lemma plus : forall x y : R, x + y = y + x.\nProof. exact Rplus_comm. Qed.\n" "${row}" "no theorem")
