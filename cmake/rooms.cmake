# SPDX-License-Identifier: Apache-2.0
# tw_room(NAME [ROOM...] [FOLDERS FOLDER...] [LIBRARIES LIB...]): the C and assembly files of one or more folders (if none is
# given, of the one that is named as the room) as one static library tw_NAME, which sees the headers of the rooms below
# through the project's root.
function(tw_room name)
  cmake_parse_arguments(ROOM "" "" "FOLDERS;LIBRARIES" ${ARGN})
  if(NOT ROOM_FOLDERS)
    set(ROOM_FOLDERS ${name})
  endif()
  set(sources)
  foreach(folder ${ROOM_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c ${CMAKE_SOURCE_DIR}/${folder}/*.S)
    list(APPEND sources ${found})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(tw_${name} STATIC ${sources})
  target_include_directories(tw_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  # Thread-local words are read on every hit: the access must not call the loader.
  target_compile_options(tw_${name} PRIVATE -ftls-model=initial-exec)
  foreach(below ${ROOM_UNPARSED_ARGUMENTS})
    if(TARGET tw_${below})
      target_link_libraries(tw_${name} PUBLIC tw_${below})
    endif()
  endforeach()
  target_link_libraries(tw_${name} PUBLIC ${ROOM_LIBRARIES})
  # For check_links.py.
  string(REPLACE ";" " " below "${ROOM_UNPARSED_ARGUMENTS}")
  set_property(GLOBAL APPEND_STRING PROPERTY TW_ROOMS "${name}:${below}\n")
endfunction()
