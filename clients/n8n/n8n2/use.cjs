// Loaded before the tests by --require: n8n-workflow is that of n8n 2, for the node and for the tests.
const Module = require('node:module');

const workflow = require.resolve('n8n-workflow');
const find = Module._resolveFilename;
Module._resolveFilename = function (name, ...rest) {
	return name === 'n8n-workflow' ? workflow : find.call(this, name, ...rest);
};
