# SPDX-License-Identifier: Apache-2.0
# Tests that are not C programs: checks of the tree, Spin models, shell tests of the commands. By glob.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT TW_SANITIZE)
  foreach(check tree memory_order semantics public docs format ringset commits controls)
    add_test(NAME check_${check} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_${check}.py
                                         ${CMAKE_SOURCE_DIR})
    set_tests_properties(check_${check} PROPERTIES LABELS check TIMEOUT 1800 SKIP_RETURN_CODE 77)
  endforeach()
  get_property(rooms GLOBAL PROPERTY TW_ROOMS)
  file(WRITE ${CMAKE_BINARY_DIR}/rooms.txt "${rooms}")
  add_test(NAME check_links COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_links.py ${CMAKE_BINARY_DIR})
  set_tests_properties(check_links PROPERTIES LABELS check)
  # Each labelled atomic weakened, and the memory of ring sets changed, in turn: the check must report it.
  foreach(check memory_order ringset)
    add_test(NAME check_${check}_self_test
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_${check}.py --self-test ${CMAKE_SOURCE_DIR})
    set_tests_properties(check_${check}_self_test PROPERTIES LABELS check TIMEOUT 600)
  endforeach()
endif()

# What the optimising compiler makes of the functions of a hit; and each row left out must be noticed.
if(Python3_FOUND AND NOT TW_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  add_test(NAME check_stack COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_stack.py --self-test
                                    $<TARGET_FILE:tracewheel-agent>)
  set_tests_properties(check_stack PROPERTIES LABELS check)
endif()

# A sanitizer's build has other structures.
if(NOT TW_SANITIZE)
  add_test(NAME check_abi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/abi/check_abi.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(check_abi PROPERTIES LABELS check SKIP_RETURN_CODE 77)
  add_test(NAME check_demangler COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_demangler.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(check_demangler PROPERTIES LABELS check)
endif()

find_program(TW_SPIN spin)
file(GLOB models CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/models/*.pml)
foreach(model ${models})
  get_filename_component(name ${model} NAME_WE)
  # The search is the same each time: of the mistakes that a model must find, a sample has one.
  string(REGEX REPLACE "_broken_.*" "" whole ${name})
  if(TW_TESTS_SAMPLE AND NOT name STREQUAL whole)
    if(has_mistake_${whole})
      continue()
    endif()
    set(has_mistake_${whole} TRUE)
  endif()
  if(TW_SPIN AND NOT TW_SANITIZE)
    add_test(NAME model_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_model.sh ${model})
    set_tests_properties(model_${name} PROPERTIES LABELS model TIMEOUT 1800)
  endif()
endforeach()

# tests/tools/WHAT.sh is ctest tools_WHAT; it gets the folder of the built programs.
if(NOT TW_SANITIZE)
  file(GLOB tool_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/*_test.sh)
  foreach(script ${tool_tests})
    get_filename_component(name ${script} NAME_WE)
    string(REGEX REPLACE "_test$" "" test ${name})
    add_test(NAME tools_${test} COMMAND ${script} ${CMAKE_BINARY_DIR})
    set_tests_properties(tools_${test} PROPERTIES LABELS tools TIMEOUT 1800 SKIP_RETURN_CODE 77)
  endforeach()
endif()
