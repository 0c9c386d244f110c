export default { id: "classifier", code: [], render(root, context) {} };
