package dial

// Planning returns the settings of every connection that only PostgreSQL knows. Nothing but speed depends on them.
//
// Each statement is planned once on a connection: planning an append takes as long as a small one. A plan that was
// made while a table was empty is not made again when it has grown. Plans that read a whole table are therefore ruled
// out. This is possible because each statement has an index for everything that it asks for.
func Planning() map[string]string {
	return map[string]string{
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"enable_indexscan": "on",
		"enable_nestloop":  "on",
		"jit":              "off", // statements are short; compiling them is not
	}
}
