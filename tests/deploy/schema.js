// SPDX-License-Identifier: Apache-2.0
// schema.js MODULES < documents.json: Kubernetes objects (a JSON list) against the published schemas, as npm's
// kubernetes-models has them compiled. Those let unknown fields pass; here what the validator never looks at is one.
"use strict";
const modules = process.argv[2];

function watched(value, path, reads) {
	if (value === null || typeof value !== "object")
		return value;
	return new Proxy(value, {
		get(target, key) {
			if (typeof key === "symbol" || !Object.prototype.hasOwnProperty.call(target, key))
				return target[key];
			reads.add(path + "/" + key);
			return watched(target[key], path + "/" + key, reads);
		},
	});
}

function* unread(value, path, reads) {
	if (value === null || typeof value !== "object")
		return;
	for (const key of Object.keys(value)) {
		if (reads.has(path + "/" + key))
			yield* unread(value[key], path + "/" + key, reads);
		else
			yield path + "/" + key;
	}
}

function validator(o) {
	const [version, group] = o.apiVersion.split("/").reverse();
	const room = { undefined: "Core", "rbac.authorization.k8s.io": "Rbac" }[group] || group[0].toUpperCase() + group.slice(1);
	const name = `IoK8sApi${room}${version[0].toUpperCase()}${version.slice(1)}${o.kind}`;
	return require(`${modules}/kubernetes-models/_schemas/${name}.js`).validate;
}

function check(documents) {
	const faults = [];
	for (const o of documents) {
		const where = `${o.kind} ${o.metadata && o.metadata.name}`;
		const reads = new Set(["/metadata/name", "/metadata/namespace"]);
		const validate = validator(o);
		if (!validate(watched(o, "", reads)))
			for (const e of validate.errors)
				faults.push(`${where}: ${e.instancePath} ${e.message || e.keyword} ${JSON.stringify(e.params)}`);
		for (const path of unread(o, "", reads))
			faults.push(`${where}: unknown field ${path}`);
	}
	console.log(faults.join("\n"));
	process.exit(faults.length ? 1 : 0);
}

require("stream/consumers").json(process.stdin).then(check);
