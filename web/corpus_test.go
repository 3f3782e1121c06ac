package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/clients/typescript"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/pack"
)

// corpusWorker judges the vectors of a file in a worker.
const corpusWorker = `import { judge } from "/clients/typescript/test/judge.js";
const sort = (v) => Array.isArray(v) ? v.map(sort) : typeof v !== "object" || v === null ? v :
	Object.fromEntries(Object.keys(v).sort().map((k) => [k, sort(v[k])]));
self.onmessage = async ({ data }) => {
	const file = await (await fetch(data)).json();
	const verdicts = {}, wrong = [];
	for (const v of file.vectors) {
		const { verdict, said } = await judge(file.kind, v.input);
		verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
		if (verdict !== v.verdict) wrong.push(v.name + ": " + verdict);
		else if (v.expect && JSON.stringify(sort(said)) !== JSON.stringify(sort(v.expect))) wrong.push(v.name + ": " + JSON.stringify(said));
	}
	self.postMessage({verdicts, wrong});
};`

// serveCorpus serves the published vectors, the verifier, and the client's own test of both.
func serveCorpus(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/clients/typescript/src/", http.StripPrefix("/clients/typescript/src/", http.FileServerFS(typescript.Verifier())))
	mux.Handle("/testdata/", http.StripPrefix("/testdata/", http.FileServer(http.Dir("../testdata"))))
	mux.HandleFunc("/clients/typescript/test/judge.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "../clients/typescript/test/judge.js")
	})
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(corpusWorker))
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>corpus</title>"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// The browser's verifier gives every published vector its expected verdict and values, in the page and in a worker.
func TestCorpusInChromium(t *testing.T) {
	server := serveCorpus(t)
	files, err := filepath.Glob("../testdata/vectors/*.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	b := chromium.New(t)
	b.Open(server.URL + "/")
	judged := 0
	files = append(files, "../testdata/packs/evidence-pack.json")
	for i := range 2 * len(files) {
		file, inWorker := files[i/2], i%2 == 1
		var got struct {
			Verdicts map[string]int
			Wrong    []string
		}
		if err := b.Run(`
			const [file, inWorker] = args;
			if (!inWorker) {
				globalThis.postMessage = (told) => { globalThis.told = told; };
				await import("/worker.js");
				await self.onmessage({data: file});
				return globalThis.told;
			}
			const worker = globalThis.worker ??= new Worker("/worker.js", {type: "module"});
			return new Promise((resolve, reject) => {
				worker.onerror = (why) => reject(new Error(why.message));
				worker.onmessage = ({data}) => resolve(data);
				worker.postMessage(file);
			});`, &got, strings.TrimPrefix(file, ".."), inWorker); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(got.Wrong) > 0 || got.Verdicts["accept"] == 0 || got.Verdicts["refuse"] == 0 {
			t.Errorf("%s, in a worker %t: got %v, wrong %q", file, inWorker, got.Verdicts, got.Wrong)
		}
		judged += got.Verdicts["accept"] + got.Verdicts["refuse"]
	}
	t.Logf("%d vectors, in the page and in a worker", judged/2)
}

// A browser that remembers the maximum number of keys of a log refuses the next rotation, and the error names the
// limit.
func TestTooManyKeysInChromium(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("../testdata/vectors/key-statement.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Vectors []struct {
			Input struct{ Bundle, Keys string }
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	statement := corpus.Vectors[0].Input
	b, err := verify.ParseBundle([]byte(statement.Bundle))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.handler)
	defer server.Close()
	browser := chromium.New(t)
	browser.Open(server.URL + "/check")
	for _, tc := range []struct {
		known, want int
		err         string
	}{{verify.MaxKnownKeys - 1, verify.MaxKnownKeys, ""}, {verify.MaxKnownKeys, 0, "at most 256 keys of a log"}} {
		var got struct {
			Keys  int
			Error string
		}
		if err := browser.Run(`
			const [assets, origin, bundle, listed, known] = args;
			const { acceptSigner } = await import(assets + "knownkeys.js");
			const { parseNote } = await import(assets + "verifier/log/note.js");
			const { parseKeys } = await import(assets + "verifier/verify/bundle.js");
			const [{ key }] = parseKeys(listed);
			const pinned = { vkey: key.text, from_size: 0, to_size: null, source: "shown" };
			const keys = [pinned, ...Array(known - 1).fill({ ...pinned, to_size: 1 })];
			const note = parseNote(JSON.parse(bundle).checkpoint);
			note.lines = note.lines.filter((line) => !key.owns(line)); // only the new key signs
			try {
				return { keys: (await acceptSigner(origin, keys, note, async () => bundle)).length, error: "" };
			} catch (why) {
				return { keys: 0, error: why.message };
			}`, &got, "/assets/"+folder(w)+"/", b.Origin, statement.Bundle, statement.Keys, tc.known); err != nil {
			t.Fatal(err)
		}
		if got.Keys != tc.want || !strings.Contains(got.Error, tc.err) {
			t.Errorf("%d known keys: got %d keys, error %q, want %d, %q", tc.known, got.Keys, got.Error, tc.want, tc.err)
		}
	}
}

// readPack returns the first evidence pack vector with a verdict or a name, and its key.
func readPack(t *testing.T, wanted string) (pack []byte, key string) {
	t.Helper()
	text, err := os.ReadFile("../testdata/packs/evidence-pack.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Vectors []struct {
			Name, Verdict string
			Input         struct {
				Pack string `json:"pack_b64"`
				Key  string
			}
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	for _, v := range corpus.Vectors {
		if v.Verdict == wanted || v.Name == wanted {
			pack, err := base64.StdEncoding.DecodeString(v.Input.Pack)
			if err != nil {
				t.Fatal(err)
			}
			return pack, v.Input.Key
		}
	}
	t.Fatalf("no pack to %s", wanted)
	return nil, ""
}

// keepOffline saves the check page as a reader does, and returns its file URL.
func keepOffline(t *testing.T, w *world) string {
	t.Helper()
	body := w.page("/check/offline.html", http.StatusOK)
	sum := sha256.Sum256(body.Body.Bytes())
	if page := w.page("/check", http.StatusOK).Body.String(); !strings.Contains(page, hex.EncodeToString(sum[:])) {
		t.Error("the page of checks does not name the hash of the file")
	}
	if got := body.Header().Get("Content-Disposition"); got != `attachment; filename="agentledger-check.html"` {
		t.Errorf("got Content-Disposition %s", got)
	}
	path := filepath.Join(t.TempDir(), "check.html")
	if err := os.WriteFile(path, body.Body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// A reader's file is checked without being uploaded, on the served page and on the saved page.
func TestFilesInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "one", nil)
	bundle := w.ask(http.MethodGet, redEvent+"one").Body.String()
	key, other := w.State(t, ledgertest.Red).VerifierKey().String(), w.State(t, ledgertest.Blue).VerifierKey().String()
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	b.Open(server.URL + "/check")
	checkFiles(t, b, bundle, key, other, true)
	checkFolders(t, b)
	wantQuiet(t, b, server.URL)
	b.Open(keepOffline(t, w))
	checkFiles(t, b, bundle, key, other, false)
	checkFolders(t, b)
	for _, url := range b.Requests() {
		if !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the file has asked for %s", url)
		}
	}
	if said := b.Messages(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

// checkFolders checks the files of a folder on the open page, chosen and dropped.
func checkFolders(t *testing.T, b *chromium.Browser) {
	t.Helper()
	l := packtest.NewSampleLog(t)
	p, key := packtest.Samples(t, l)[0].Parts, l.Key().String()
	right, wrong, cut := map[string]string{}, map[string]string{}, map[string]string{}
	for _, f := range p.Contents(t) {
		right[f.Name], wrong[f.Name], cut[f.Name] = f.Content, f.Content, f.Content
	}
	wrong[pack.FileReport] += " "
	delete(cut, pack.FileManifest)
	for _, c := range []struct {
		name                 string
		files                map[string]string
		state, words, report string
	}{
		{"unpacked", right, "ok", "Proved", "complete for [0, 13)"},
		{"changed", wrong, "fail", "not proved: name and size of file", ""},
		{"without manifest", cut, "fail", "can't tell: the files of the pack can't be read: no file manifest.json", ""},
	} {
		for _, drops := range []bool{false, true} {
			files := map[string]string{}
			for name, content := range c.files {
				files[name] = base64.StdEncoding.EncodeToString([]byte(content))
			}
			var got struct{ State, Words, Report string }
			if err := b.Run(`
				const [files, key, drops] = args, outcome = document.getElementById("outcome");
				const all = Object.entries(files).map(([name, text]) => {
					const file = new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name.split("/").at(-1));
					Object.defineProperty(file, "webkitRelativePath", {value: "november/" + name});
					return file;
				});
				document.getElementById("trusted").value = key;
				outcome.dataset.state = "waiting";
				if (drops) {
					const entryOf = (name, entries) => ({name, isDirectory: true, createReader: () => {
						const parts = [entries.slice(0, 3), entries.slice(3), []];
						return {readEntries: (resolve) => resolve(parts.shift())};
					}});
					const fileEntry = (f) => ({name: f.name, isFile: true, file: (resolve) => resolve(f)});
					const policies = all.filter((f) => f.webkitRelativePath.includes("/policies/"));
					const top = all.filter((f) => !policies.includes(f)).map(fileEntry);
					const folder = entryOf("november", [...top, entryOf("policies", policies.map(fileEntry))]);
					const drop = new Event("drop", {bubbles: true, cancelable: true});
					drop.dataTransfer = {files: [], items: [{webkitGetAsEntry: () => folder}]};
					document.body.dispatchEvent(drop);
				} else {
					document.getElementById("file").value = "";
					Object.defineProperty(document.getElementById("folder"), "files", {value: all, configurable: true});
					document.querySelector("#check button").click();
				}
				while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
				delete document.getElementById("folder").files;
				return {state: outcome.dataset.state, words: outcome.textContent, report: document.getElementById("report").textContent};`,
				&got, files, key, drops); err != nil {
				t.Fatal(err)
			}
			if got.State != c.state || !strings.Contains(got.Words, c.words) || !strings.Contains(got.Report, c.report) {
				t.Errorf("%s, dropped %t: got %+v, want %s, %q, %q", c.name, drops, got, c.state, c.words, c.report)
			}
		}
	}
}

// checkFiles checks files on the open page: honest ones, forged ones and others.
// remembers reports whether the page remembers keys.
func checkFiles(t *testing.T, b *chromium.Browser, bundle, key, other string, remembers bool) {
	t.Helper()
	typed, again, words, typedAgain := "; this browser remembers it from now on.", "ok", ", which was entered in this browser on ", ", which was entered in this browser on "
	if !remembers {
		typed, again, words, typedAgain = ".", "none", "Whole, but whose? ", " that you entered."
	}
	honest, packKey := readPack(t, "accept")
	forged, forgedKey := readPack(t, "refuse")
	voted, votedKey := readPack(t, "signed votes")
	for i, c := range []struct {
		name, file, key, state, words, report string
	}{
		{"before a key is known", bundle, "", "none", "Whole, but whose? It names the log ", "ok    inclusion"},
		{"key typed by hand", bundle, key, "ok", " that you entered" + typed, "ok    inclusion"},
		{"remembered key", bundle, "", again, words, "ok    inclusion"},
		{"remembered key, typed again", bundle, key, "ok", typedAgain, "ok    inclusion"},
		{"another key", bundle, other, "fail", "can't tell: signed by the key", "--    checkpoint"},
		{"forged", strings.Replace(bundle, `\"effective\":\"allow\"`, `\"effective\":\"deny\"`, 1), key, "fail", "not proved: record: ", "FAIL  record"},
		{"no bundle", "<script>", key, "fail", "not a bundle that this program reads", ""},
		{"no key", bundle, "<b>", "fail", "The check could not be made", ""},
		{"pack", string(honest), packKey, "ok", "Proved", "complete for [0, "},
		{"pack of another log", string(honest), key, "fail", "can't tell: signed by the key", ""},
		{"signed vote", string(voted), votedKey, "ok", "Proved", "vote of acc_2 on apr_1: approve, signed by the passkey 1QiQ7UhoUjUGi8VJg1tMJnrGthDrDFS-ZGYz50YCM9g, registered 2026-11-18T11:06:44.000Z"},
		{"unsigned vote", string(voted), votedKey, "ok", "Proved", "vote of acc_3 on apr_1: approve, in place of acc_5, unsigned: an unverified operator claim"},
		{"forged pack", string(forged), forgedKey, "fail", "", ""},
	} {
		var got struct{ State, Words, Report string }
		if err := b.Run(`
			while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
			const [file, key, drops] = args, outcome = document.getElementById("outcome");
			const bytes = Uint8Array.from(atob(file), (c) => c.charCodeAt(0)), chosen = new DataTransfer();
			chosen.items.add(new File([bytes], "document"));
			document.getElementById("trusted").value = key;
			outcome.dataset.state = "waiting";
			if (drops) {
				document.body.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: chosen}));
			} else {
				document.getElementById("file").files = chosen.files;
				document.querySelector("#check button").click();
			}
			while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
			return {state: outcome.dataset.state, words: outcome.textContent, report: document.getElementById("report").textContent};`,
			&got, base64.StdEncoding.EncodeToString([]byte(c.file)), c.key, i%2 == 1); err != nil {
			t.Fatal(err)
		}
		if got.State != c.state || !strings.Contains(got.Words, c.words) || !strings.Contains(got.Report, c.report) {
			t.Errorf("%s: got %+v, want %s, %q, %q", c.name, got, c.state, c.words, c.report)
		}
	}
}
