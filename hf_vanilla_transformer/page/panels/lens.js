export default { id: "lens", code: [], render(root, context) {} };
