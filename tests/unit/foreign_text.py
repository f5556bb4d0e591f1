"""Text that others choose: what shells, terminals, pages and parsers take for more than text."""

from hypothesis import strategies as st

EVIL = (
    "'", '"', "`", "$(touch pwned)", "`touch pwned`", ";touch pwned;", "';touch pwned;'", "\n", "\ntouch pwned\n", "\r",
    "\0", "\x1b[2J", "\x7f", "\x9b", "\u202e", "\u2028", "\ud800", "\\", "!", "!!", "&&", "|", ">pwned", "<", "*", "~", "#",
    "{a,b}", "--", "-x", "--force=true", "$HOME", "{}", "{0}", "é", "日本", " ", "\t", "=", "</td><script>", "]]>", "<!--",
    "&lt;", "](javascript:a)", "| a |", "\n# title", "\n---\n", "\n- a: b", ": ", "%s", "${uid}", "$$", "~1",
    '"}\nup 1\n#', "[bold]")
WORDS = st.lists(st.one_of(st.sampled_from(EVIL), st.text(max_size=8)), min_size=1, max_size=6).map("".join)
