package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/cmd/agentledger/nodes"
	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/identity/platform"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/loglist"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/programversion"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/web"
	consolepages "github.com/agentledger/agentledger/web/console"
	operatorpages "github.com/agentledger/agentledger/web/operator"
)

// service is everything between the store and the listeners:
//
//	store -> ledgers -> system events -> orgs, agents, rules, accounts -> witnesses, provision -> surfaces
//
// It is built from left to right and closed from right to left.
type service struct {
	watch      *observation
	control    *admission.Control // of all surfaces of the main listener
	store      *datadir.Store
	node       *nodes.Node    // nil if this process is the only one
	records    storage.Engine // for background work
	clock      *clock.Guard   // of everything below
	ledgers    *log.Ledgers
	auditor    *audit.Auditor
	events     *sysevent.Appender // of the service itself
	verified   *keytable.Verified // of recent events
	orgs       *org.Orgs
	agents     *agent.Agents
	policies   *policystore.Policies
	accounts   *account.Accounts
	members    *member.Members
	factors    *factor.Factors
	voterKeys  *voterkey.Keys
	tokens     *apitoken.Tokens
	shares     *share.Links
	slackLinks *slacklink.Links
	callouts   *egress.Client

	approvals *approval.Approvals
	voterMail *notify.Voters
	weekly    *notify.Weekly
	webhooks  *webhook.Sender
	erasures  *erasure.Erasures
	exporter  *streamexport.Exporter
	mail      *mail.Outbox
	letters   notify.AccountMail
	workflows *workflow.Workflows
	witnesses *witness.Witnesses
	founder   *provision.Provisioner
	setup     *provision.Setup

	directory     *directory.Directory // or nil
	directoryName *publicapi.Directory // the same for the public surface

	logList *loglist.List // or nil

	status *status.Service
	index  *index.Index // of events
	checks []readiness  // of /readyz, in their order
	probe  status.Probe // of the store, for a check
}

// openService opens the store and builds the service on it. fatal is called if the store fails and the process has to end.
func openService(ctx context.Context, c config.Serve, watch *observation, fatal func(error)) (*service, error) {
	if _, err := provision.ParseHost(c.PublicURL); err != nil {
		return nil, fmt.Errorf("--public-url: %w", err)
	}
	st, err := openServedStore(ctx, c, watch.logger, fatal)
	if err != nil {
		return nil, err
	}
	if err := claimDatabase(ctx, c.Store, c.NodeURL, st, watch.logger); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return newService(ctx, c, st, watch, fatal)
}

// newService builds the service on a store. If it returns an error, it has closed the store.
func newService(ctx context.Context, c config.Serve, st *datadir.Store, watch *observation,
	fatal func(error)) (*service, error) {
	watch.registry.MustRegister(st.Engine.Collector())
	s := &service{watch: watch, control: admission.New(runtime.GOMAXPROCS(0)), store: st,
		verified: new(keytable.Verified)}
	s.checks = []readiness{s.checkAppends, s.checkStore, s.checkClock}
	s.registerModeMetric()
	err := s.buildClock(c)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.node, err = nodes.New(nodes.Options{URL: c.NodeURL, Version: programversion.Read().Short(),
		Engine: st.Engine, Keyring: st.Keyring, Anchors: st.Anchors, Elapsed: watch.clocks.Elapsed, Now: s.clock.Now,
		Held: s.clock.Check, Logger: watch.logger, Metrics: watch.registry})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.checks = append(s.checks, s.node.CheckJoined)
	s.records = s.node.Store(st.Engine)
	s.ledgers, err = log.Open(ctx, log.Options{Owned: s.node.Share(), FirstAnchor: s.node.FirstAnchor,
		FetchAnchors: s.node.FetchAnchors, Elapsed: watch.clocks.Elapsed,
		Store: st.Engine, Keyring: st.Keyring, Anchors: st.Anchors, Logger: watch.logger, Metrics: watch.registry,
		Tracer: watch.tracer, Fatal: fatal, Clock: s.clock.Now, Held: s.clock.Check, ReadOnly: st.ReadOnly,
		Anchored: c.AnchoredOnly, Shared: s.control.Contended, AnchorFirst: st.AnchorFirst(c.Tuning),
		Witness: s, TileCacheBytes: max(1, int64(c.TileCacheMiB)<<20), // 0 would be the default
		LeafCacheBytes: max(1, int64(c.LeafCacheMiB)<<20),
	})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.index = index.New(index.Options{Ledgers: s.ledgers, Store: s.records, Clock: s.clock.Now,
		Columns: func(ctx context.Context, state *log.State) ([]index.Column, error) { return s.orgs.Columns(ctx, state) },
		InheritedToolKeys: func(ctx context.Context, state *log.State) ([]string, error) {
			return s.orgs.InheritedToolKeys(ctx, state)
		},
		Metrics: watch.registry})
	s.auditor = audit.New(audit.Options{Ledgers: s.ledgers, Store: s.records, Logger: watch.logger,
		Metrics: watch.registry, Clock: s.clock.Now, Verified: s.verified})
	err = s.store.CheckMasterKey(ctx)
	if err == nil && !st.ReadOnly {
		err = rekey.BeginRekeying(ctx, st.Engine, st.Keyring)
	}
	if err == nil {
		s.mail, err = mail.Open(mail.Options{Records: s.records, Keyring: st.Keyring, Clock: s.clock.Now,
			DailyMails: c.StrangerMails, Metrics: watch.registry}, c.SMTP)
	}
	if err == nil {
		err = s.buildComponents(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.registerReadyMetric()
	s.buildStatus(c)
	return s, nil
}

// testPasswords is set by the linker (-X main.testPasswords=yes) for the programs that the tests start and for nothing
// else. Each of more than a thousand servers hashes a few passwords, which was half of the servers' processor time.
var testPasswords string

// passwordHashing returns the cost of password hashes: the default of every release, or nearly none in the programs of
// the tests.
func passwordHashing(logger *slog.Logger) account.Hashing {
	if testPasswords == "" {
		return account.Hashing{}
	}
	logger.Warn("passwords are hashed so cheaply that they can be guessed: this program was built for tests")
	return account.Hashing{MemoryKiB: 64, Passes: 1}
}

// buildComponents builds the components above the ledgers, each after those that it depends on.
func (s *service) buildComponents(ctx context.Context, c config.Serve) error {
	host, err := provision.ParseHost(c.PublicURL)
	if err != nil {
		return err
	}
	rules, client, err := witnessRules(c)
	if err != nil {
		return err
	}
	plans, err := planCatalogue(c.Limits)
	if err != nil {
		return err
	}
	records := s.records

	// Agents and organizations. Changes of settings are events, whose disclosure is a setting, so the appender reads it
	// for each event.
	s.events = &sysevent.Appender{Ledgers: s.ledgers, Records: records, Keyring: s.store.Keyring, Clock: s.clock.Now,
		Processors: s.control.Processors, Disclosure: func(ctx context.Context, state *log.State) (id.Disclosure, error) {
			return s.orgs.Disclosure(ctx, state)
		}}
	bounds := &quota.Quota{Records: records, Clock: s.clock.Now,
		Plan: func(ctx context.Context, t id.Tenant) (quota.Limits, error) { return s.orgs.Limits(ctx, t) }}
	s.agents = agent.New(agent.Options{Records: records, Events: s.events, Quota: bounds, Keyring: s.store.Keyring,
		Clock: s.clock.Now})
	s.orgs, err = org.New(org.Options{
		Records: records, Events: s.events, Ledgers: s.ledgers, Quota: bounds, Agents: s.agents, Plans: plans,
		Environment: c.Environment, Witnesses: rules, Clock: s.clock.Now, Metrics: s.watch.registry,
		Providers: c.ProviderNames(), Watch: s.store.Watch(),
	})
	if err != nil {
		return err
	}

	// People.
	s.letters = notify.AccountMail{Outbox: s.mail, PublicURL: c.PublicURL}
	s.accounts = account.New(account.Options{Records: records, Clock: s.clock.Now, Mail: s.letters, Nodes: s.node.Count,
		Hashing: passwordHashing(s.watch.logger), Factors: func() account.Factors { return s.factors }})
	letters := notify.OrganizationMail{Outbox: s.mail, Organizations: s.orgs, Accounts: s.accounts,
		PublicURL: c.PublicURL}
	s.factors, err = factor.New(factor.Options{Records: s.store.Engine, Accounts: s.accounts, Sealer: s.store.Keyring,
		PublicURL: c.PublicURL, Clock: s.clock.Now})
	if err != nil {
		return err
	}
	s.voterKeys = voterkey.New(voterkey.Options{Records: records, Events: s.events, Ledgers: s.ledgers,
		Accounts: s.accounts, Factors: s.factors, Clock: s.clock.Now, Mail: letters})
	s.slackLinks = slacklink.New(slacklink.Options{Records: records, Events: s.events, Members: s.accounts,
		Keyring: s.store.Keyring, Pace: bounds, Clock: s.clock.Now, Mail: letters})
	s.members = member.New(member.Options{Records: records, Events: s.events, Accounts: s.accounts, Quota: bounds,
		Clock: s.clock.Now, Mail: letters, VoterKeys: s.voterKeys, SlackLinks: s.slackLinks, Held: s.clock.Check})
	s.tokens = apitoken.New(apitoken.Options{Records: records, Events: s.events, Members: s.accounts,
		Pace: bounds, Clock: s.clock.Now})
	s.shares = share.New(share.Options{Records: records, Events: s.events, Pace: bounds, Clock: s.clock.Now})

	// Decisions and notifications about them.
	s.policies = policystore.New(policystore.Options{Records: records, Events: s.events, Quota: bounds,
		Processors: s.control.Processors, Clock: s.clock.Now, Settings: s.orgs, Voters: s.accounts})
	s.callouts = egress.New(egress.Options{Allow: c.CalloutAllow})
	s.webhooks = webhook.New(webhook.Options{
		Records: records, Keyring: s.store.Keyring, Caller: s.callouts,
		Events: s.events, Pace: bounds, PublicURL: c.PublicURL, Mail: letters, Ledgers: s.ledgers, Plans: s.orgs,
		Clock: s.clock.Now, Metrics: s.watch.registry})
	s.exporter = streamexport.New(streamexport.Options{Records: records, Ledgers: s.ledgers, Events: s.events,
		Pace: bounds, Keyring: s.store.Keyring, Caller: egress.New(egress.Options{Allow: c.CalloutAllow}),
		Clock: s.clock.Now, Metrics: s.watch.registry})
	s.approvals = approval.New(approval.Options{
		Records: records, Events: s.events, Ledgers: s.ledgers, Policies: s.policies, Agents: s.agents,
		Organizations: s.orgs, Members: s.accounts, Deputies: s.members, SignIns: s.members, VoterKeys: s.voterKeys,
		Keyring: s.store.Keyring, Clock: s.clock.Now, Held: s.clock.Check,
		Webhooks: &notify.Counter{Deliveries: s.webhooks, Records: records, Clock: s.clock.Now,
			Enabled: s.mail.Enabled()},
	})
	s.voterMail = notify.NewVoters(notify.VotersOptions{Records: records, Approvals: s.approvals, Accounts: s.accounts,
		Organizations: s.orgs, Outbox: s.mail, PublicURL: c.PublicURL, Clock: s.clock.Now, Held: s.clock.Check})
	acts := &eventlist.ActReader{Events: &eventlist.Reader{Index: s.index, Ledgers: s.ledgers, Organizations: s.orgs}, Agents: s.agents, People: s.accounts}
	s.weekly = notify.NewWeekly(notify.WeeklyOptions{Store: s.records, Ledgers: s.ledgers, Acts: acts, Approvals: s.approvals, Accounts: s.accounts,
		Organizations: s.orgs, Outbox: s.mail, PublicURL: c.PublicURL, Clock: s.clock.Now, Held: s.clock.Check})
	s.workflows = workflow.New(workflow.Options{
		Records: records, Events: s.events, Ledgers: s.ledgers, Policies: s.policies, Agents: s.agents,
		Organizations: s.orgs, Processors: s.control.Processors, Silence: c.WorkflowSilence,
		MaxBytes: c.MaxEventKiB << 10, Clock: s.clock.Now, Held: s.clock.Check, Webhooks: s.webhooks,
		Metrics: s.watch.registry, Approvals: s.approvals,
	})

	// Operations on whole organizations.
	s.erasures = erasure.New(erasure.Options{Records: records, Events: s.events, Ledgers: s.ledgers, Index: s.index,
		Eraser: &erasure.EnvelopeEraser{Appender: s.events, Ledgers: s.ledgers}, Approvals: s.approvals,
		Lists: s.approvals, Deliveries: s.webhooks, Mails: s.mail, Archive: s.store, Settings: s.orgs, Pace: bounds,
		Clock: s.clock.Now, Held: s.clock.Check})
	s.buildWitnesses(c, rules, client)
	s.founder = &provision.Provisioner{Ledgers: s.ledgers, Organizations: s.orgs, Agents: s.agents,
		Accounts: s.accounts, Keyring: s.store.Keyring, Host: host, NewTenant: s.node.NewTenant}
	s.setup = &provision.Setup{Store: s.store.Engine, Provisioner: s.founder, Clock: s.clock.Now,
		Process: c.NodeURL, ReadOnly: s.store.ReadOnly}
	s.buildLogList(c)
	return s.buildDirectory(ctx, c)
}

// checkHost returns an error if the store has logs of another service than the one at a public URL.
func (s *service) checkHost(ctx context.Context, publicURL string) error {
	host, err := provision.ParseHost(publicURL)
	if err != nil {
		return err
	}
	for t, err := range s.store.Engine.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		state, err := s.ledgers.State(ctx, t)
		if err != nil {
			return err
		}
		if origin := state.Identity().Origin; !strings.HasPrefix(string(origin), string(host)+"/o/") {
			return fmt.Errorf("missing flags: --public-url=URL: the logs in this store belong to another public URL than %s: %s", publicURL, origin)
		}
	}
	return nil
}

// mainHandler returns the handler of the main listener.
func (s *service) mainHandler(c config.Serve, signIn *identity.Server, shared *edge.Edge) (http.Handler, error) {
	r := shared.Router()
	events := ingest.New(ingest.Options{Edge: shared, Ledgers: s.ledgers, Organizations: s.orgs, Agents: s.agents,
		Subjects: subjecttoken.New(s.callouts, s.clock.Now),
		Policies: s.policies, Approvals: s.approvals, Workflows: s.workflows, PublicURL: c.PublicURL, Keyring: s.store.Keyring,
		MaxBytes: c.MaxEventKiB << 10,
		MaxAhead: c.ClockAhead, MaxAge: c.ClockBehind, MaxInFlight: c.MaxInFlight, MaxRefusals: c.MaxRefusals,
		MaxInFlightOrganization: c.MaxInFlightOrganization, MaxPolls: c.MaxPolls, Metrics: s.watch.registry,
		MaxPollsOrganization: c.MaxPollsOrganization, Clock: s.clock.Now, Control: s.control,
		KeyTableBytes: int64(c.KeyTablesMiB) << 20, Verified: s.verified})
	events.Routes(r)
	readers, known, standIn := s.node.Readers(s.ledgers, s.store.AnchorFirst(c.Tuning))
	public := publicapi.New(publicapi.Options{Edge: shared, Ledgers: readers, Known: known, Organizations: s.orgs,
		Agents: s.agents, GrantKeys: s.approvals, Witnesses: s.witnesses, Policies: s.policies,
		PublicURL: c.PublicURL, Directory: s.directoryName, LogList: s.publicLogList(), Clock: s.clock.Now,
		MaxInFlight: c.MaxPublicReads, Control: s.control, Metrics: s.watch.registry})
	pages := web.New(web.Options{Edge: shared, Organizations: s.orgs, Log: public.Reader(), PublicURL: c.PublicURL,
		Logs: s.publicLogs(), Hashes: publicHashes{Index: s.index, StandIn: standIn},
		Acts: publicActs{Index: s.index, StandIn: standIn}, Names: publicNames{Orgs: s.orgs, Agents: s.agents},
		Health: s.findUnreadiness, MaxInFlight: c.MaxPublicReads, Control: s.control})
	public.Routes(r, pages.EventPage)
	packs := &evidence.Exporter{Ledgers: s.ledgers, Witnesses: s.witnesses, Transparency: public, Agents: s.agents,
		Policies: s.policies, Approvals: s.approvals, Organizations: s.orgs, People: s.accounts, Events: s.events, Index: s.index,
		Logger: s.watch.logger}
	people, err := console.New(console.Options{
		Edge: shared, Sessions: s.accounts, Orgs: s.orgs, Agents: s.agents, Policies: s.policies,
		Approvals: s.approvals, Workflows: s.workflows, Webhooks: s.webhooks, Witnesses: s.witnesses,
		Events:        &eventlist.Reader{Index: s.index, Ledgers: s.ledgers, Bundles: public, Organizations: s.orgs},
		StreamExports: s.exporter, Tokens: s.tokens, Shares: s.shares, PublicURL: c.PublicURL, Control: s.control, Erasures: s.erasures,
		Evidence: packs, People: s.accounts, Members: s.members, VoterKeys: s.voterKeys,
		Sources: sysevent.Sources{Records: s.store.Engine}, SlackLinks: s.slackLinks, Callouts: s.callouts, ToolNames: s.callouts,
		Address: identity.AddressFrom(c.ClientAddressHeader), Simulator: simulate.New(simulate.Options{
			Ledgers: s.ledgers, Processors: s.control.Processors, Clock: s.clock.Now})})
	if err != nil {
		return nil, err
	}
	people.Routes(r)
	signIn.PeopleRoutes(r)
	pages.Routes(r)
	consolepages.Mount(r, consolepages.Options{Edge: shared, Kit: pages.Kit(), Control: s.control,
		Console: people, Identity: signIn, LogKeys: public.Reader().LogKeys})
	edge.OpenAPIRoutes(r, shared)
	s.addHealthRoutes(r, shared)
	return r, nil
}

// identitySurface returns the surface of platform calls and sign-ins.
func (s *service) identitySurface(c config.Serve, secret string, shared *edge.Edge) (*identity.Server, error) {
	openID, err := oidc.New(oidc.Options{Providers: c.OpenID, Sealer: s.store.Keyring, Clock: s.clock.Now,
		Callback: identity.CallbackFor(c.PublicURL)})
	if err != nil {
		return nil, err
	}
	calls := &platform.Calls{Provisioner: s.founder, Orgs: s.orgs, Clock: s.clock,
		Witnesses: s.askWitnesses, Reindex: s.index.Rebuild, Accounts: s.accounts, Factors: s.factors,
		Snapshots: &backup.Snapshots{Store: s.store.Engine, Dir: c.SnapshotsDir(), Clock: time.Now}, Status: s.status}
	return identity.New(identity.Options{Edge: shared, Accounts: s.accounts, Factors: s.factors, Members: s.members,
		Orgs: s.orgs, Provisioner: s.founder, Setup: s.setup, Operator: calls, Mail: s.letters, OpenID: openID,
		Browsers: s.store.Keyring, Signup: c.Signup == "members", PlatformSecret: secret, PublicURL: c.PublicURL,
		Address: identity.AddressFrom(c.ClientAddressHeader), Nodes: s.node.Count, Metrics: s.watch.registry})
}

// identityHandler returns the handler of the identity listener.
func (s *service) identityHandler(surface *identity.Server, shared *edge.Edge) http.Handler {
	r := shared.Router()
	surface.Routes(r)
	operatorpages.Mount(r, operatorpages.Options{Edge: shared, Identity: surface, Passed: forward.Passed,
		PublicURL: surface.PublicURL, Directory: s.directoryName.Name()})
	s.addHealthRoutes(r, shared)
	return r
}

// Close waits until accepted events are durable and closes the store.
func (s *service) Close() error {
	return errors.Join(s.ledgers.Close(), s.store.CloseEngine())
}
