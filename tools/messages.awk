# SPDX-License-Identifier: BSD-2-Clause
# The entries of mrfab_messages.7 as rows of a table in C: { "E1001", "what the page says" }.

# The arguments of a macro, with SEPARATOR between them.
function arguments(line, separator,   out, word) {
	sub(/^\.[A-Z]+ */, "", line)
	while (line != "") {
		if (match(line, /^"[^"]*"/))
			word = substr(line, 2, RLENGTH - 2)
		else {
			match(line, /^[^ ]+/)
			word = substr(line, 1, RLENGTH)
		}
		line = substr(line, RLENGTH + 1)
		sub(/^ +/, "", line)
		out = out (out == "" ? "" : separator) word
	}
	return out
}

function add(text) {
	gsub(/\\-/, "-", text)
	gsub(/\\f[BIPR]/, "", text)
	gsub(/\\\(aq/, "'", text)
	gsub(/\\\([lr]q/, "", text)
	gsub(/\\e/, "\\", text)
	gsub(/\\&/, "", text)
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	body = body (body == "" || body ~ /\\n$/ ? "" : " ") text
}

function finish() {
	if (code != "")
		printf "\t{ \"%s\", \"%s\" },\n", code, body
	code = body = ""
}

/^\.(TP|SH)/ { finish(); next }
/^\.B MRF\\-[EW][0-9]+$/ { code = substr($2, 6); next }
code == "" { next }
/^\.(P|PP|IP)/ { body = body "\\n"; next }
/^\.(BR|RB|IR|RI|BI|IB) / { add(arguments($0, "")); next }
/^\.(B|I) / { add(arguments($0, " ")); next }
/^\./ { next }
{ add($0) }
END { finish() }
