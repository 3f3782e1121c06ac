package dial

// Planning returns planner settings for every connection. They affect only speed.
//
// Each statement is planned once per connection, because planning an append takes as long as executing a small one. A
// plan that was made while a table was empty is not replaced when the table has grown, so plans that read a whole table
// are ruled out. This works because there is an index for everything that a statement looks up.
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
