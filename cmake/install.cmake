# SPDX-License-Identifier: Apache-2.0
# Rules of `cmake --install`, by GNUInstallDirs. No installed file holds an absolute path: the installation can be moved.
# Each component is a Debian package (package.cmake).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tracewheel)
set(public tracewheel tracewheel-capture tracewheel-debug)

# Everything that is installed, and nothing else: `./run build`.
add_custom_target(product DEPENDS ${public} tracewheel-agent tracewheel-command tracewheel-stress)
if(TARGET tracewheel-manual)
  add_dependencies(product tracewheel-manual)
endif()

set_target_properties(tracewheel-capture PROPERTIES EXPORT_NAME capture)
set_target_properties(tracewheel-debug PROPERTIES EXPORT_NAME debug)
set_target_properties(tracewheel-command PROPERTIES EXPORT_NAME command)
set_target_properties(tracewheel-stress PROPERTIES EXPORT_NAME stress)
# No target for other projects: it may be absent.
if(TARGET tracewheel-sql)
  add_dependencies(product tracewheel-sql)
  install(TARGETS tracewheel-sql RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT sql)
endif()
if(TARGET tracewheel-ship)
  add_dependencies(product tracewheel-ship tracewheel-fleet)
  install(TARGETS tracewheel-ship tracewheel-fleet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT fleet)
  install(FILES fleet/clickhouse.sql fleet/duckdb.sql DESTINATION ${CMAKE_INSTALL_DATADIR}/tracewheel COMPONENT fleet)
endif()
install(TARGETS ${public} tracewheel-command tracewheel-stress EXPORT tracewheel-targets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
# Preloaded by the command; no program links it.
install(TARGETS tracewheel-agent LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tracewheel COMPONENT command)
# The application for Erlang, which `record --erlang` gives to nodes.
if(TARGET tracewheel-erlang)
  add_dependencies(product tracewheel-erlang)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/erlang/ebin ${CMAKE_BINARY_DIR}/erlang/priv
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/tracewheel/erlang COMPONENT erlang USE_SOURCE_PERMISSIONS)
endif()
# Where Debian's python3 looks in /usr and /usr/local.
if(TARGET tracewheel-python)
  set(python_folder lib/python3/dist-packages)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr/local")
    set(python_folder lib/python3.11/dist-packages)
  endif()
  add_dependencies(product tracewheel-python)
  install(TARGETS tracewheel-python LIBRARY DESTINATION ${python_folder}/tracewheel COMPONENT python)
  install(DIRECTORY tools/python/tracewheel DESTINATION ${python_folder} COMPONENT python FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()
install(DIRECTORY include/tracewheel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

install(EXPORT tracewheel-targets NAMESPACE tracewheel:: DESTINATION ${package_folder} COMPONENT dev)
configure_package_config_file(cmake/tracewheel-config.cmake.in ${CMAKE_BINARY_DIR}/tracewheel-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tracewheel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tracewheel-config.cmake ${CMAKE_BINARY_DIR}/tracewheel-config-version.cmake
              cmake/tracewheel_instrument.cmake DESTINATION ${package_folder} COMPONENT dev)

file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH to_include ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(description_tracewheel "Which functions a native program calls, when, and how long they take, from inside")
set(description_tracewheel-capture "write and read captures of Tracewheel")
set(description_tracewheel-debug "arguments and lines of native functions, for Tracewheel")
foreach(package ${public})
  set(description ${description_${package}})
  configure_file(cmake/library.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()

# Where zsh looks: Debian has a folder of its own for packages.
set(zsh_folder site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_folder vendor-completions)
endif()
if(TARGET tracewheel-manual)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/manual/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/manual/tracewheel.bash RENAME tracewheel
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/manual/_tracewheel DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder}
          COMPONENT command)
  install(FILES ${CMAKE_BINARY_DIR}/manual/tracewheel.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT command)
endif()
install(DIRECTORY tools/record/prototypes DESTINATION ${CMAKE_INSTALL_DATADIR}/tracewheel COMPONENT command FILES_MATCHING
        PATTERN "*.proto")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(CODE "set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")" COMPONENT doc)
install(SCRIPT cmake/installed_links.cmake COMPONENT doc)
include(cmake/package.cmake)
