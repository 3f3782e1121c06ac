package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/passkeytest"
)

// Each change of passkeys and recovery codes is mailed to the account's person and to nobody else.
func TestFactorChangesAreMailed(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	w.deliver()
	expect := func(step, subject string) {
		t.Helper()
		sent := w.deliver()
		if len(sent) != 1 || sent[0].To != email || sent[0].Subject != subject || !strings.Contains(sent[0].Text, "https://Log.Example/ledger") {
			t.Errorf("%s: got %+v", step, sent)
		}
	}
	first := ann.register("laptop")
	expect("added", "A passkey was added to your account")
	answers(t, "removed", ann.ask("DELETE", passkeysPath+"/"+ann.passkeys().Passkeys[0].ID, ""), 204, "")
	expect("removed", "A passkey was removed from your account")
	codes := ann.makeCodes()
	expect("codes", "New recovery codes were generated")
	fresh := w.browser(5)
	fresh.begin(email, `"recovery_code"`)
	if status, body := fresh.code(codes[0]); status != 200 || strings.Contains(body, codes[0]) {
		t.Fatalf("got %d %s", status, body)
	}
	expect("used", "A recovery code was used")
	thief := w.browser(8)
	thief.begin(email, `"recovery_code"`)
	if status, body := thief.code(codes[0]); status != 401 {
		t.Errorf("a used code: got %d %s", status, body)
	}
	answers(t, "a removed passkey", w.browser(6).use(first), 401, passkeyRefused)
	evil := passkeytest.New(t, "https://evil.example")
	answers(t, "a refused passkey", fresh.finish("k", evil.Create(fresh.options(passkeysPath+"/begin", ""))), 422, newPasskeyRefused)
	if sent := w.deliver(); len(sent) != 0 {
		t.Errorf("refusals: got %+v", sent)
	}
	who, err := w.accounts.Find(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	answers(t, "operator", w.platform("DELETE", "/v1/id/platform/accounts/"+string(who.ID)+"/second-factors", ""), 204, "")
	expect("operator", "Your passkeys and recovery codes were removed")
	w.decode(bob.ask("GET", me, ""), 200, &signedIn{})
}

// A change and its mail are written together: each of many changes within a minute sends a mail of its own.
func TestAddedAndRemovedAreBothMailed(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	w.deliver()
	ann.register("laptop")
	answers(t, "removed", ann.ask("DELETE", passkeysPath+"/"+ann.passkeys().Passkeys[0].ID, ""), 204, "")
	var subjects []string
	for _, m := range w.deliver() {
		subjects = append(subjects, m.Subject)
	}
	slices.Sort(subjects)
	if got := strings.Join(subjects, "; "); got != "A passkey was added to your account; A passkey was removed from your account" {
		t.Errorf("got %s", got)
	}
}

// A password typed in another Unicode form is the same password.
func TestPasswordForms(t *testing.T) {
	const composed, decomposed = "caf\u00e9 correct horse", "cafe\u0301 correct horse"
	w, ann, _ := twoBrowsers(t)
	change := func(current, wanted string) {
		t.Helper()
		w.decode(ann.ask("POST", "/v1/id/account/password", `{"current":"`+current+`","new":"`+wanted+`"}`), 200, &signedIn{})
	}
	change(password, decomposed)
	for i, typed := range []string{composed, decomposed} {
		w.decode(w.browser(5+i).ask("POST", login, `{"email":"`+email+`","password":"`+typed+`"}`), 200, &signedIn{})
	}
	change(composed, password)
	if got := w.browser(7).ask("POST", login, `{"email":"`+email+`","password":"`+composed+`"}`); got.Code != 401 {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}
