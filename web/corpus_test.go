package web_test

import (
	"encoding/base64"
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
)

// corpusWorker judges the vectors of a file.
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

// The browser's verifier gives every published vector its verdict, with the values that it says, in the page and in a
// worker.
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
			const worker = new Worker("/worker.js", {type: "module"});
			return new Promise((resolve, reject) => {
				worker.onerror = (why) => reject(new Error(why.message));
				worker.onmessage = ({data}) => { worker.terminate(); resolve(data); };
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

// readPack returns the first vector of evidence packs with a verdict, and its key.
func readPack(t *testing.T, verdict string) (pack []byte, key string) {
	t.Helper()
	text, err := os.ReadFile("../testdata/packs/evidence-pack.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Vectors []struct {
			Verdict string
			Input   struct {
				Pack string `json:"pack_b64"`
				Key  string
			}
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	for _, v := range corpus.Vectors {
		if v.Verdict == verdict {
			pack, err := base64.StdEncoding.DecodeString(v.Input.Pack)
			if err != nil {
				t.Fatal(err)
			}
			return pack, v.Input.Key
		}
	}
	t.Fatalf("no pack to %s", verdict)
	return nil, ""
}

// A reader's file is checked without a request that carries it.
func TestFilesInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "one", nil)
	bundle := w.ask(http.MethodGet, redEvent+"one").Body.String()
	key, other := w.State(t, ledgertest.Red).VerifierKey().String(), w.State(t, ledgertest.Blue).VerifierKey().String()
	pack, packKey := readPack(t, "accept")
	forged, forgedKey := readPack(t, "refuse")
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	b.Open(server.URL + "/check")
	for _, c := range []struct {
		name, file, key, state, words, report string
	}{
		{"bundle", bundle, key, "ok", "Proved", "ok    inclusion"},
		{"without key", bundle, "", "fail", "can't tell whose log this is", "ok    inclusion"},
		{"another key", bundle, other, "fail", "can't tell: signed by the key", "--    checkpoint"},
		{"forged", strings.Replace(bundle, `\"effective\":\"allow\"`, `\"effective\":\"deny\"`, 1), key, "fail", "not proved: record: ", "FAIL  record"},
		{"no bundle", "<script>", key, "fail", "not a bundle that this program reads", ""},
		{"no key", bundle, "<b>", "fail", "The check could not be made", ""},
		{"pack", string(pack), packKey, "ok", "Proved", "complete for [0, "},
		{"pack of another log", string(pack), key, "fail", "can't tell: signed by the key", ""},
		{"forged pack", string(forged), forgedKey, "fail", "", ""},
	} {
		var got struct{ State, Words, Report string }
		if err := b.Run(`
			while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
			const [file, key] = args, outcome = document.getElementById("outcome");
			const bytes = Uint8Array.from(atob(file), (c) => c.charCodeAt(0)), chosen = new DataTransfer();
			chosen.items.add(new File([bytes], "document"));
			document.getElementById("file").files = chosen.files;
			document.getElementById("trusted").value = key;
			document.querySelector("#check button").click();
			while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
			return {state: outcome.dataset.state, words: outcome.textContent, report: document.getElementById("report").textContent};`,
			&got, base64.StdEncoding.EncodeToString([]byte(c.file)), c.key); err != nil {
			t.Fatal(err)
		}
		if got.State != c.state || !strings.Contains(got.Words, c.words) || !strings.Contains(got.Report, c.report) {
			t.Errorf("%s: got %+v, want %s, %q, %q", c.name, got, c.state, c.words, c.report)
		}
	}
	wantQuiet(t, b, server.URL)
}
