EXTRA_DIST += README.md CONTRIBUTING.md \
	docs/ARCHITECTURE.md \
	docs/CONFORMANCE.md \
	docs/WIRE.md

# Section 3mrfab, so that libfabric's own pages are not disturbed: man 3mrfab fi_mr.
dist_man_MANS = \
	docs/man/fi_av.3mrfab \
	docs/man/fi_cntr.3mrfab \
	docs/man/fi_cq.3mrfab \
	docs/man/fi_eq.3mrfab \
	docs/man/fi_getinfo.3mrfab \
	docs/man/fi_log.3mrfab \
	docs/man/fi_param.3mrfab \
	docs/man/mrfab.7 \
	docs/man/mrfab_info.1
