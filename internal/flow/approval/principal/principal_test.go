package principal

import "testing"

func TestMentions(t *testing.T) {
	const ann = "ann@example.com"
	for text, want := range map[string]bool{
		ann: true, "ANN@EXAMPLE.COM": true, "  ann@example.com\u00a0": true, "Ann@Example.com\u3000": true,
		"mailto:ann@example.com": true, "MAILTO:Ann@example.com": true, "mailto:ann%40example.com": true, "mailto:ann@example.com?subject=x": true,
		"<ann@example.com>": true, "Ann Example <ann@example.com>": true, `"Ann" <"ann"@example.com>`: true, "ann@example.com (Ann)": true,
		"ann @ example . com": true, "support for ann@example.com": true, "acct:ann@example.com": true, "ann@example.com.": true, "ann@example.com,bot": true,
		"ann\u200b@example.com": true, "\ufeffann@example.com": true, "\u202eann@example.com": true, "ａｎｎ@example.com": true, "ann＠example.com": true,
		"ann@example。com": true, "ann\u00ad@example.com": true, "joann@example.com; ann@example.com": true,
		"": false, "ann": false, "example.com": false, "bob@example.com": false, "joann@example.com": false, "x.ann@example.com": false,
		"ann@example.com.evil.org": false, "ann@example.community": false, "ann@example.com-x": false, "аnn@example.com": false, "%zz": false,
	} {
		if got := Mentions(text, ann); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]bool{"acc_ann": true, " ACC_ANN": true, "user acc_ann": true, "acc_anna": false, "xacc_ann": false} {
		if got := Mentions(text, "acc_ann"); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if Mentions("", "") || Mentions("anybody", "") {
		t.Error("nobody is named by no name")
	}
	if !Mentions("stra\u00dfe@example.com", "STRASSE@example.com") || !Mentions("e\u0301va@example.com", "\u00e9va@example.com") {
		t.Error("a folded or decomposed address is not found")
	}
}
