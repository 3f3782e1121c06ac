package doctor

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/trust"
)

// checkSettings checks the settings that parsing alone does not validate.
func checkSettings(_ context.Context, c config.Serve) (found []Finding) {
	if _, err := provision.ParseHost(strings.TrimRight(c.PublicURL, "/")); err != nil {
		found = append(found, attend("choose --public-url with care: it is in the name of every log, permanently",
			"%v", err))
	} else if isPlaceholder(c.PublicURL) {
		found = append(found, attend("set --public-url to the address of this service: it is in the name of every log, permanently",
			"the public URL %s is that of an example", c.PublicURL))
	}
	if c.Listen.Listen == "" {
		found = append(found, attend("set --listen", "the main listener has no address"))
	}
	if c.WitnessPolicyFile != "" {
		text, err := os.ReadFile(c.WitnessPolicyFile)
		if err == nil {
			_, err = trust.Parse(text)
		}
		if err != nil {
			found = append(found, attend("docs/audit/witnesses.md has the form of the file",
				"--witness-policy-file: %v", err))
		}
	}
	if c.AcceptClock {
		found = append(found, advise("take --accept-clock away after one start",
			"every start trusts the clock as it is"))
	}
	if len(found) == 0 {
		found = append(found, good("they can be read; the public URL is %s", c.PublicURL))
	}
	return found
}

// judgeVariables returns a finding for each environment variable with the prefix of settings that is not a setting.
func judgeVariables(unknown []config.UnknownVariable) (found []Finding) {
	for _, v := range unknown {
		f := advise("remove it", "the environment variable %s is not a setting and has no effect", v.Name)
		if v.Meant != "" {
			f.Level, f.Do = Attention, "did you mean "+v.Meant+"?"
		}
		f.Check = "environment"
		found = append(found, f)
	}
	return found
}

// isPlaceholder reports whether a URL has a host that is reserved for examples.
func isPlaceholder(publicURL string) bool {
	u, err := url.Parse(publicURL)
	if err != nil {
		return false
	}
	host := "." + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return slices.ContainsFunc([]string{".example", ".example.com", ".example.net", ".example.org", ".invalid"},
		func(reserved string) bool { return strings.HasSuffix(host, reserved) })
}

// checkOpenFiles divides the open files as serve does.
func checkOpenFiles(_ context.Context, c config.Serve) []Finding {
	return judgeOpenFiles(listener.OpenFileLimit(), c)
}

func judgeOpenFiles(limit int, c config.Serve) []Finding {
	const do = "raise the limit: LimitNOFILE=65536 in the unit, or ulimit -n"
	shares, err := listener.ShareOpenFiles(limit, c.MaxConnections, c.Storage == "")
	switch {
	case err != nil:
		return []Finding{attend(do, "%v", err)}
	case shares.Main < c.MaxConnections:
		return []Finding{advise(do, "the process may have %d: the main listener gets %d connections, and not %d", limit,
			shares.Main, c.MaxConnections)}
	}
	return []Finding{good("the process may have %d", limit)}
}

// checkProxy compares public URL, certificates, addresses and the header of the client's address.
func checkProxy(_ context.Context, c config.Serve) (found []Finding) {
	ownTLS, https := c.SpeaksTLS(), strings.HasPrefix(c.PublicURL, "https://")
	header := c.ClientAddressHeader
	switch {
	case ownTLS && header != "":
		found = append(found, advise("omit --client-address-header, unless a proxy passes the TLS connections through",
			"clients reach the main listener directly, so any of them can forge an address in %s", header))
	case https && !ownTLS && header == "":
		found = append(found, attend("set --client-address-header to the proxy's header, as X-Forwarded-For",
			"a proxy terminates TLS, and all its clients count as one: a single attacker uses up the sign-in attempts of all"))
	case !https && !config.IsLocalURL(c.PublicURL):
		found = append(found, attend("put a proxy with TLS before it, or give it --tls-cert and --tls-key",
			"the public URL is not https: ingest keys and passwords are sent unencrypted"))
	}
	for _, l := range []struct{ name, address string }{{"--id-listen", c.IDListen},
		{"--metrics-listen", c.MetricsListen}} {
		if isOpenToOthers(l.address) {
			found = append(found, attend("use a loopback address, or an address of a private network",
				"%s %s: other machines may reach it without TLS", l.name, l.address))
		}
	}
	if len(found) == 0 {
		found = append(found, good("public URL, header and listeners fit together"))
	}
	return found
}

// isOpenToOthers reports whether the address of a listener is neither a loopback address nor in a private network.
func isOpenToOthers(listened string) bool {
	host, _, err := net.SplitHostPort(listened)
	if err != nil || host == "localhost" || host == "unix" { // or a socket
		return false
	}
	address, err := netip.ParseAddr(host)
	return err != nil || !address.IsLoopback() && !address.IsPrivate()
}

// checkMail connects to the mail server without sending anything.
func checkMail(ctx context.Context, c config.Serve) []Finding {
	if c.SMTP == "" {
		return []Finding{advise("set --smtp, so that users can reset their passwords", "no mail is sent")}
	}
	server, err := mail.NewServer(c.SMTP)
	if err != nil {
		return []Finding{attend("docs/operate/configure.md: Mail", "%v", err)}
	}
	if err := server.TryConnection(ctx); err != nil {
		return []Finding{attend("look at the address, the network and the firewall",
			"the mail server can't be reached: %v", err)}
	}
	return []Finding{good("the mail server takes connections")}
}
