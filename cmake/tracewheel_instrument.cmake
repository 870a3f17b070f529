# SPDX-License-Identifier: Apache-2.0
# tracewheel_instrument(TARGET...): every function of these targets gets an entry sled, so that Tracewheel can show every
# call of it: nine bytes of NOPs a function; docs/instrumenting.md says what happens to them. If the command is
# found, linked files are compacted: one long NOP costs less than nine short ones while no session traces.
# find_package(tracewheel) brings it; a project may also keep a copy of this file and include() that.
if(NOT TRACEWHEEL_COMMAND)
  find_program(TRACEWHEEL_COMMAND tracewheel)
endif()

function(tracewheel_instrument)
  foreach(target ${ARGN})
    foreach(language C CXX)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:${language}>:-fpatchable-function-entry=9>)
    endforeach()
    get_target_property(type ${target} TYPE)
    if(TRACEWHEEL_COMMAND AND type MATCHES "EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY")
      add_custom_command(TARGET ${target} POST_BUILD VERBATIM
                         COMMAND ${TRACEWHEEL_COMMAND} compact --quiet $<TARGET_FILE:${target}>)
    endif()
  endforeach()
endfunction()
