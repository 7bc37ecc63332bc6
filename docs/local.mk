EXTRA_DIST += README.md CONTRIBUTING.md \
	docs/ARCHITECTURE.md \
	docs/CONFORMANCE.md \
	docs/CONFORMANCE-MSG.md \
	docs/CONFORMANCE-TAGGED.md \
	docs/MISTAKES.md \
	docs/PEERS.md \
	docs/PROGRAMS.md \
	docs/MODES.md \
	docs/THREATS.md \
	docs/WIRE.md

# Section 3mrfab, so that libfabric's own pages are not disturbed: man 3mrfab fi_mr.
dist_man_MANS = \
	docs/man/fi_atomic.3mrfab \
	docs/man/fi_av.3mrfab \
	docs/man/fi_cm.3mrfab \
	docs/man/fi_cntr.3mrfab \
	docs/man/fi_cq.3mrfab \
	docs/man/fi_domain.3mrfab \
	docs/man/fi_endpoint.3mrfab \
	docs/man/fi_eq.3mrfab \
	docs/man/fi_errno.3mrfab \
	docs/man/fi_fabric.3mrfab \
	docs/man/fi_getinfo.3mrfab \
	docs/man/fi_log.3mrfab \
	docs/man/fi_mr.3mrfab \
	docs/man/fi_msg.3mrfab \
	docs/man/fi_param.3mrfab \
	docs/man/fi_rma.3mrfab \
	docs/man/mrfab.7 \
	docs/man/mrfab_demo.1 \
	docs/man/mrfab_info.1 \
	docs/man/mrfab_messages.7 \
	docs/man/mrfab_profiles.7 \
	docs/man/mrfab_run.1 \
	docs/man/mrfab_with_rxe.1

# The script is in EXTRA_DIST with its folder.
TESTS += scripts/check-docs

# man fi_mr_reg finds fi_mr(3mrfab).
MAN_LINKS = $(SHELL) $(top_srcdir)/scripts/man-links
MAN_PAGES = `for p in $(dist_man_MANS); do echo "$(top_srcdir)/$$p"; done`
# Without its .la file libtool does not take the module away.
install-data-hook:
	rm -f "$(MODULE).la" "$(DESTDIR)$(runtimedir)"/*/*.la "$(DESTDIR)$(runtimedir)"/*/*.so
	$(MAN_LINKS) install "$(DESTDIR)$(man3dir)" $(MAN_PAGES)
uninstall-hook:
	rm -f "$(MODULE).so" "$(DESTDIR)$(runtimedir)"/*/*.so.*
	$(MAN_LINKS) remove "$(DESTDIR)$(man3dir)" $(MAN_PAGES)
