package telemetry

import "runtime/debug"

// ProgramVersion returns the module version, or the commit that the program was built from. It is "unknown"
// without either.
func ProgramVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
