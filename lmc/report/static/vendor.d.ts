/** The libraries of vendor.js. */
declare const vendor: { cytoscape: any; dagre: any };
