// Package deploy has the tests of the samples in the folder deploy: the Helm chart and the compose file are read by the
// libraries of their own authors, and the real program starts with the arguments and settings that they make.
//
// No cluster and no engine for containers runs here.
package deploy
